
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g;
  const show = (text) => String(text ?? "").replace(HIDDEN, "\ufffd");
  const SVG = "http://www.w3.org/2000/svg";

  function el(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, show(value));
    for (const child of children) made.append(typeof child === "object" ? child : show(child));
    return made;
  }
  function svg(name, attributes = {}, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, show(value));
    if (text !== undefined) made.textContent = show(text);
    return made;
  }
  const several = (count) => (count > 1 ? count : "");
  const worse = (number, wanted) => (number < wanted ? el("strong", { class: "bad" }, number) : number);
  const section = (title, ...children) => el("section", {}, el("h2", {}, title), ...children);
  const list = (items) => el("ul", {}, ...items.map((item) => el("li", {}, item)));
  // numeric: columns to the right. A cell may be an element. Columns without any text are left out, and so are rows
  // after the thousandth; on narrow screens a row is a block, in which cells have their heads before them.
  const MOST = 1000;
  function table(heads, rows, numeric = []) {
    const shown = rows.slice(0, MOST);
    const columns = heads.map((_, n) => n).filter((n) => shown.some((row) => row[n] !== "" && row[n] !== undefined));
    const kind = (n) => (numeric.includes(n) ? { class: "n" } : {});
    const made = el("table", {},
      el("thead", {}, el("tr", {}, ...columns.map((n) => el("th", { scope: "col", ...kind(n) }, heads[n])))),
      el("tbody", {}, ...shown.map((row) => el("tr", {}, ...columns.map((n) => el("td", { ...kind(n), "data-head": heads[n] }, row[n]))))));
    return rows.length > MOST ? el("div", {}, made, el("p", { class: "soft" }, `${rows.length - MOST} more are in the file.`)) : made;
  }
  // The answer comes first, then what was asked, then where that is from.
  const top = (good) => main.append(el("h1", { class: good ? "good" : "bad" }, data.verdict),
    ...(data.changes.length ? [list(data.changes)] : []), el("p", { class: "soft" }, data.headline));
  const name = (about) => `${about.kind} ${about.namespace ? about.namespace + "/" : ""}${about.name}`;
  function span(seconds) {
    const s = Math.round(seconds);
    if (s < 90) return `${s}s`;
    if (s < 5400) return `${Math.round(s / 60)}m`;
    return `${(s / 3600).toFixed(1)}h`;
  }

  // -- a trace: a tree of which only the lines that are seen are elements

  function clock(at) {
    const moment = new Date(at * 1000);
    return Number.isNaN(moment.getTime()) ? "?" : moment.toISOString().slice(11, 23);
  }
  function trace() {
    const target = data.target;
    main.append(el("h1", {}, `Trace of ${name(target)}`), el("pre", { class: "head" }, data.head.join("\n")));
    const nodes = data.nodes.map((node) => ({ ...node, children: [], open: true }));
    const roots = [];
    for (const node of nodes) (node.parent === null ? roots : nodes[node.parent].children).push(node);
    nodes.forEach((node) => { if (node.children.length > 200) node.open = false; });
    const search = el("input", { type: "search", id: "find", "aria-label": "Show lines with" , placeholder: "Filter ( / )" });
    const count = el("span", { class: "soft", role: "status" });
    const rows = el("div", { class: "rows", tabindex: "0", role: "tree", "aria-label": "What followed from what" });
    const space = el("div", { class: "space", role: "presentation" });
    rows.append(space);
    main.append(section("What followed from what", el("div", { class: "tools" }, search, count,
      el("span", { class: "soft" }, "-> followed, known; ~> followed, inferred. Arrow keys move, open and close; / filters."))), rows);
    const HEIGHT = 24, WRAPPED = 500;
    let lines = [], active = 0, wraps = false;

    function flatten() {
      const wanted = search.value.toLowerCase();
      lines = [];
      const waiting = roots.map((node) => [node, 0]).reverse();
      while (waiting.length) {
        const [node, depth] = waiting.pop();
        if (!wanted || node.text.toLowerCase().includes(wanted)) lines.push([node, depth]);
        if (node.open || wanted) for (let n = node.children.length; n--;) waiting.push([node.children[n], depth + 1]);
      }
      active = Math.max(0, Math.min(active, lines.length - 1));
      count.textContent = `${lines.length} of ${nodes.length} lines`;
      wraps = lines.length <= WRAPPED; // more have one height each, so that only those in sight are elements
      rows.classList.toggle("wraps", wraps);
      rows.hidden = !lines.length; // a tree has lines
      space.style.height = wraps ? "auto" : `${lines.length * HEIGHT}px`;
      rows.style.height = wraps ? "auto" : `min(65vh, ${(lines.length + 1) * HEIGHT}px)`;
      draw();
    }
    function row(index, top) {
      const [node, depth] = lines[index];
      const mark = node.edge === "inferred" ? "guess" : "";
      const made = el("div", { class: `row ${index === active ? "active" : ""}`, role: "treeitem", id: `row-${index}`,
        "aria-level": Math.min(depth, 24) + 1, "aria-setsize": lines.length, "aria-posinset": index + 1,
        "aria-selected": index === active });
      if (node.children.length) made.setAttribute("aria-expanded", String(node.open));
      made.style.top = `${top}px`;
      made.style.setProperty("--depth", Math.min(depth, 24));
      const twist = el("span", { class: "twist", "aria-hidden": "true" }, node.children.length ? (node.open ? "▾" : "▸") : "");
      const bad = /REFUSED|trouble|was refused|\bfailed\b/.test(node.text) ? "bad" : mark;
      const arrow = node.parent === null ? "" : node.edge === "inferred" ? "~> " : "-> ";
      made.append(twist, el("span", { class: "soft" }, `${clock(node.at)} ${arrow}`), el("span", { class: bad }, node.text));
      made.addEventListener("click", () => { active = index; toggle(node, twist.textContent !== ""); });
      return made;
    }
    function draw() {
      const first = wraps ? 0 : Math.max(0, Math.floor(rows.scrollTop / HEIGHT) - 10);
      const last = wraps ? lines.length : Math.min(lines.length, first + Math.ceil(rows.clientHeight / HEIGHT) + 20);
      space.replaceChildren(...Array.from({ length: last - first }, (_, n) => row(first + n, (first + n) * HEIGHT)));
      // it names only what there is: the active line may have been scrolled away
      if (active >= first && active < last) rows.setAttribute("aria-activedescendant", `row-${active}`);
      else rows.removeAttribute("aria-activedescendant");
    }
    function toggle(node, does) { if (does) node.open = !node.open; flatten(); }
    function move(to) {
      active = Math.max(0, Math.min(lines.length - 1, to));
      const above = active * HEIGHT;
      if (above < rows.scrollTop) rows.scrollTop = above;
      if (above + HEIGHT > rows.scrollTop + rows.clientHeight) rows.scrollTop = above + HEIGHT - rows.clientHeight;
      draw();
      if (wraps) document.getElementById(`row-${active}`)?.scrollIntoView({ block: "nearest" });
    }
    rows.addEventListener("scroll", () => { if (!wraps) draw(); }, { passive: true });
    rows.addEventListener("keydown", (event) => {
      const node = lines[active]?.[0];
      const page = Math.floor(rows.clientHeight / HEIGHT);
      const to = { ArrowDown: active + 1, ArrowUp: active - 1, Home: 0, End: lines.length - 1, PageDown: active + page,
        PageUp: active - page }[event.key];
      if (to !== undefined) move(to);
      else if (event.key === "ArrowRight" && node && !node.open) toggle(node, true);
      else if (event.key === "ArrowLeft" && node && node.children.length && node.open) toggle(node, true);
      else if (event.key === "ArrowLeft" && node && node.parent !== null)
        move(lines.findIndex(([one]) => one === nodes[node.parent]));
      else if (event.key === "Enter" && node) toggle(node, node.children.length > 0);
      else return;
      event.preventDefault();
    });
    search.addEventListener("input", () => { active = 0; rows.scrollTop = 0; flatten(); });
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && document.activeElement !== search) { search.focus(); event.preventDefault(); }
      if (event.key === "Escape" && document.activeElement === search) { search.value = ""; flatten(); rows.focus(); }
    });
    addEventListener("beforeprint", () => {
      space.style.height = "auto";
      space.replaceChildren(...lines.slice(0, 2000).map((_, n) => row(n, 0)),
        ...(lines.length > 2000 ? [el("p", {}, `${lines.length - 2000} more lines are in the file.`)] : []));
    });
    addEventListener("afterprint", flatten);
    addEventListener("resize", () => { if (!wraps) draw(); });
    flatten();
    main.append(section("Sources", list([...data.notes, "Times are UTC. " + data.legend])));
  }

  // -- a plan

  // Round moments from 0 to the horizon, at most so many.
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];
  function ticks(horizon, most) {
    const step = STEPS.find((one) => horizon / one <= most) ?? Math.ceil(horizon / most / 86400) * 86400;
    return Array.from({ length: Math.floor(horizon / step) + 1 }, (_, n) => n * step);
  }
  function chart(one, horizon) {
    const WIDTH = Math.max(280, Math.min(1200, main.clientWidth - 40)), HEIGHT = 110, LEFT = 40, BASE = 90, TOP = 10;
    const most = Math.max(1, one.wanted, ...one.ready.map(([, count]) => count));
    const x = (at) => LEFT + (WIDTH - LEFT - 10) * Math.min(1, at / horizon);
    const y = (count) => BASE - (BASE - TOP) * (count / most);
    const made = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
      "aria-label": `${name(one.about)}: lowest ${one.lowest} of ${one.wanted}` });
    let path = "", before = null;
    const ends = [...one.ready, [horizon, one.ready.length ? one.ready[one.ready.length - 1][1] : 0]];
    for (const [at, count] of ends) {
      path += before === null ? `M${x(at)} ${y(count)}` : `H${x(at)}V${y(count)}`;
      if (before !== null && before[1] < one.wanted)
        made.append(svg("rect", { class: "below", x: x(before[0]), y: TOP, width: Math.max(0, x(at) - x(before[0])), height: BASE - TOP }));
      before = [at, count];
    }
    made.append(svg("line", { class: "axis", x1: LEFT, y1: BASE, x2: WIDTH - 10, y2: BASE }),
      svg("line", { class: "axis wanted", x1: LEFT, y1: y(one.wanted), x2: WIDTH - 10, y2: y(one.wanted) }),
      svg("path", { class: "steps", d: path }),
      svg("text", { x: LEFT - 6, y: y(most) + 4, "text-anchor": "end" }, most),
      svg("text", { x: LEFT - 6, y: BASE + 4, "text-anchor": "end" }, 0));
    for (const at of ticks(horizon, WIDTH / 90)) {
      const edge = WIDTH - 10 - x(at) < 20;
      made.append(svg("text", { x: x(at), y: HEIGHT - 4, "text-anchor": edge ? "end" : "middle" }, `+${span(at)}`));
    }
    return el("figure", {}, el("figcaption", {}, `${name(one.about)}: ready ${one.about.kind === "Service" ? "endpoints" : "pods"}`), made);
  }
  function plan() {
    top(data.problems.every((one) => one.already));
    if (data.problems.length)
      main.append(section("Problems", table(["What", "Object", "Why", "Without the change, too"],
        data.problems.map((one) => [one.kind, name(one.about), one.text, one.already ? "yes" : ""]))));
    if (data.assumed.length) main.append(section("Assumed", list(data.assumed)));
    for (const risk of data.risks)
      main.append(section(`Check this first: ${risk.text}`, list(risk.problems.map((one) => `${name(one.about)}: ${one.text}`))));
    if (data.availability.length) {
      const ranked = [...data.availability].sort((a, b) => (a.lowest - a.wanted) - (b.lowest - b.wanted));
      main.append(section("Availability", table(["Object", "Ready before", "Wanted", "Lowest", "Below for"],
        ranked.map((one) => [name(one.about), one.before, one.wanted, worse(one.lowest, one.wanted), one.belowS ? span(one.belowS) : ""]), [1, 2, 3, 4])));
      main.append(section("Over time", ...ranked.slice(0, 60).map((one) => chart(one, data.horizonS)),
        ...(ranked.length > 60 ? [el("p", { class: "soft" }, `${ranked.length - 60} more are in the table.`)] : [])));
    }
    if (data.timeline.length)
      main.append(section("What happens", table(["When", "What", "Object", "Pods", "Detail", "By"],
        data.timeline.map((one) => [`+${span(one.atS)}`, one.what, name(one.about), one.about.kind === "Node" ? "" : one.count || "", one.detail, one.cause]), [3])));
    if (data.writes.length)
      main.append(section("Writes", table(["Controller", "Verb", "Resource", "Of", "With", "Without", "Refused"],
        data.writes.map((one) => [one.controller, one.verb, one.resource, one.owner, one.count, one.before, one.refused]), [4, 5, 6])));
    if (data.audit.length)
      main.append(section("Writes after a takeover", table(["Controller", "Verb", "Resource", "Object", "Count", "Message"],
        data.audit.map((one) => [one.controller, one.verb, one.resource, name(one.about), one.count, one.message]), [4])));
    if (data.differences.length)
      main.append(section("What is different in the end", table(["What", "Object", "Count", "Fields"],
        data.differences.map((one) => [one.action, one.about.name ? name(one.about) : `${one.about.kind} of ${one.owner}`,
          several(one.count), one.fields.map((field) => field.path).join(", ")]), [2])));
    main.append(section("Not modelled", list(data.notModelled)));
  }

  // -- a plan beside what happened

  function comparison() {
    const words = { happened: ["happened", "good"], "not-yet": ["not yet", "guess"], differently: ["differently", "bad"], unknown: ["unknown", "soft"] };
    const order = ["differently", "not-yet", "unknown", "happened"];
    const state = (one) => el("span", { class: (words[one.state] ?? words.unknown)[1] }, (words[one.state] ?? words.unknown)[0]);
    const value = (one) => (one === null ? "none" : typeof one === "string" ? one : JSON.stringify(one));
    top(data.good);
    const low = data.availability.filter((one) => one.state === "differently");
    if (data.availability.length)
      main.append(section("Ready pods and endpoints", table(["Object", "Planned for now", "Is", "Planned lowest", "Planned in the end"],
        [...low, ...data.availability.filter((one) => one.state !== "differently")].map((one) =>
          [name(one.about), one.planned, one.state === "differently" ? el("strong", { class: "bad" }, one.found) : one.found, one.lowest, one.final]), [1, 2, 3, 4])));
    if (data.unexpected.length)
      main.append(section("Not planned", table(["What", "Object", "Count", "By", "At"],
        data.unexpected.map((one) => [one.what, name(one.about), several(one.count), one.by, one.at]), [2])));
    const steps = [...data.steps].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
    const fields = steps.filter((one) => one.state !== "happened").flatMap((one) =>
      one.fields.filter((field) => field.state !== "happened").map((field) =>
        [state(field), name(one.about), field.path, value(field.before), value(field.planned), value(field.found)]));
    if (fields.length)
      main.append(section("Fields that are not as planned", table(["State", "Object", "Field", "Was", "Planned", "Is"], fields)));
    if (steps.length)
      main.append(section("Planned", table(["State", "What", "Object", "Count", "Why"],
        steps.map((one) => [state(one), one.action, one.about.name ? name(one.about) : `${one.about.kind} of ${one.owner}`,
          several(one.count), one.detail]), [3])));
    main.append(section("Notes", list(data.notes)));
  }

  try {
    main.replaceChildren();
    ({ trace, plan, comparison })[document.body.dataset.kind]();
    main.append(el("p", { class: "foot soft" }, "All data of this report is in this file; it asks nobody for anything."));
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  } catch (error) {
    main.append(el("p", { class: "bad" }, `This report cannot be shown: ${error}`));
  }
})();

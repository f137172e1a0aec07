// Prints how the libraries of kube-controller-manager read texts; see kubernetes_readings.py.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"
)

func res(v any, err error) any {
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"value": v}
}

func read(kind, text string) any {
	switch kind {
	case "quantity":
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return res(nil, err)
		}
		return res(q.String(), nil)
	case "labels":
		s, err := labels.Parse(text)
		if err != nil {
			return res(nil, err)
		}
		return res(s.String(), nil)
	case "fields":
		s, err := fields.ParseSelector(text)
		if err != nil {
			return res(nil, err)
		}
		return res(s.String(), nil)
	case "time":
		var t metav1.Time
		b, _ := json.Marshal(text)
		err := t.UnmarshalJSON(b)
		return res(t.UTC().Unix(), err)
	case "duration":
		d, err := time.ParseDuration(text)
		return res(strconv.FormatInt(int64(d), 10), err)
	case "ip":
		ip := netutils.ParseIPSloppy(text)
		if ip == nil {
			return res(nil, fmt.Errorf("no IP"))
		}
		return res(ip.String(), nil)
	case "cidr":
		ip, n, err := netutils.ParseCIDRSloppy(text)
		if err != nil {
			return res(nil, err)
		}
		return res(ip.String()+" "+n.String(), nil)
	case "int64":
		n, err := strconv.ParseInt(text, 10, 64)
		return res(strconv.FormatInt(n, 10), err)
	case "bool":
		n, err := strconv.ParseBool(text)
		return res(n, err)
	case "percent":
		v := intstr.FromString(text)
		n, err := intstr.GetScaledValueFromIntOrPercent(&v, 100, true)
		return res(n, err)
	case "cron":
		s, err := cron.ParseStandard(text)
		if err != nil {
			return res(nil, err)
		}
		return res(s.Next(time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)).UTC().Unix(), nil)
	case "url":
		u, err := url.Parse(text)
		if err != nil {
			return res(nil, err)
		}
		return res([]string{u.Scheme, u.Host, u.EscapedPath(), u.RawQuery, u.Fragment}, nil)
	case "base64":
		b, err := base64.StdEncoding.DecodeString(text)
		return res(hex.EncodeToString(b), err)
	case "label":
		return res(len(validation.IsDNS1123Label(text)) == 0, nil)
	case "subdomain":
		return res(len(validation.IsDNS1123Subdomain(text)) == 0, nil)
	case "qualified":
		return res(len(validation.IsQualifiedName(text)) == 0, nil)
	case "labelvalue":
		return res(len(validation.IsValidLabelValue(text)) == 0, nil)
	case "configmapkey":
		return res(len(validation.IsConfigMapKey(text)) == 0, nil)
	case "envvar":
		return res(len(validation.IsRelaxedEnvVarName(text)) == 0, nil)
	case "portname":
		return res(len(validation.IsValidPortName(text)) == 0, nil)
	case "trim":
		return res(hex.EncodeToString([]byte(strings.TrimSpace(text))), nil)
	}
	return "?"
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		k, h, _ := strings.Cut(in.Text(), " ")
		b, _ := hex.DecodeString(h)
		out.Encode(read(k, string(b)))
	}
}

// A suite as operators have it: envtest, a manager with a reconciler and a webhook, a custom resource. It runs on what
// KUBEBUILDER_ASSETS names; with CONTROLLERS=1 it expects controllers and nodes there.
package envtest_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var (
	kind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	env  *envtest.Environment
	cfg  *rest.Config
	api  client.Client
)

func widget(namespace, name string, size int64) *unstructured.Unstructured {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	found.SetNamespace(namespace)
	found.SetName(name)
	_ = unstructured.SetNestedField(found.Object, size, "spec", "size")
	return found
}

// reconciler gives each Widget a ConfigMap of its own, and says so in the status.
type reconciler struct{ client.Client }

func (r reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	owner := &unstructured.Unstructured{}
	owner.SetGroupVersionKind(kind)
	if err := r.Get(ctx, request.NamespacedName, owner); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: owner.GetName()}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, settings, func() error {
		settings.Data = map[string]string{"owner": owner.GetName()}
		return controllerutil.SetControllerReference(owner, settings, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := unstructured.SetNestedField(owner.Object, true, "status", "seen"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Update(ctx, owner)
}

func refuseNegative(_ context.Context, request admission.Request) admission.Response {
	if strings.Contains(string(request.Object.Raw), `"size":-`) {
		return admission.Denied("a size is never negative")
	}
	return admission.Allowed("")
}

func configuration() *admissionv1.ValidatingWebhookConfiguration {
	path, effects := "/validate", admissionv1.SideEffectClassNone
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:                    "widgets.example.com",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             &effects,
			ClientConfig: admissionv1.WebhookClientConfig{
				Service: &admissionv1.ServiceReference{Namespace: "system", Name: "webhook", Path: &path},
			},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule: admissionv1.Rule{
					APIGroups: []string{kind.Group}, APIVersions: []string{kind.Version}, Resources: []string{"widgets"},
				},
			}},
		}},
	}
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begin := time.Now()
	env = &envtest.Environment{
		CRDDirectoryPaths:     []string{"crds"},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{configuration()},
		},
	}
	var err error
	if cfg, err = env.Start(); err != nil {
		panic(err)
	}
	println("started after", time.Since(begin).Milliseconds(), "ms")
	defer func() {
		begin := time.Now()
		if err := env.Stop(); err != nil {
			panic(err)
		}
		println("stopped after", time.Since(begin).Milliseconds(), "ms")
	}()
	hook := env.WebhookInstallOptions
	manager, err := ctrl.NewManager(cfg, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: hook.LocalServingHost, Port: hook.LocalServingPort, CertDir: hook.LocalServingCertDir,
		}),
	})
	if err != nil {
		panic(err)
	}
	manager.GetWebhookServer().Register("/validate", &webhook.Admission{Handler: admission.HandlerFunc(refuseNegative)})
	watched := &unstructured.Unstructured{}
	watched.SetGroupVersionKind(kind)
	err = ctrl.NewControllerManagedBy(manager).Named("widget").For(watched).Owns(&corev1.ConfigMap{}).
		Complete(reconciler{manager.GetClient()})
	if err != nil {
		panic(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	if api, err = client.New(cfg, client.Options{}); err != nil {
		panic(err)
	}
	started := manager.GetWebhookServer().StartedChecker()
	for started(nil) != nil {
		time.Sleep(10 * time.Millisecond)
	}
	code := m.Run()
	cancel()
	if err := <-ended; err != nil {
		panic(err)
	}
	return code
}

func namespace(t *testing.T) string {
	t.Helper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := api.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	return made.Name
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func controllers(t *testing.T) {
	t.Helper()
	if os.Getenv("CONTROLLERS") == "" {
		t.Skip("no controllers")
	}
}

func gone(t *testing.T, object client.Object) func() bool {
	return func() bool {
		return apierrors.IsNotFound(api.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	}
}

func TestReconciled(t *testing.T) {
	made := widget(namespace(t), "a", 1)
	if err := api.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the status says seen", func() bool {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(made), made); err != nil {
			t.Fatal(err)
		}
		seen, _, _ := unstructured.NestedBool(made.Object, "status", "seen")
		return seen
	})
}

func TestOwnedGoWithTheirOwner(t *testing.T) {
	controllers(t)
	made := widget(namespace(t), "a", 1)
	if err := api.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	settings := &corev1.ConfigMap{}
	eventually(t, "it is there", func() bool {
		return api.Get(t.Context(), client.ObjectKeyFromObject(made), settings) == nil
	})
	if err := api.Delete(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes", gone(t, settings))
}

func TestNamespacesGo(t *testing.T) {
	controllers(t)
	name := namespace(t)
	if err := api.Create(t.Context(), widget(name, "a", 1)); err != nil {
		t.Fatal(err)
	}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := api.Delete(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes", gone(t, made))
}

func TestDeploymentsRun(t *testing.T) {
	controllers(t)
	labels, replicas := map[string]string{"app": "web"}, int32(3)
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(t), Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
			},
		},
	}
	if err := api.Create(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all replicas are ready", func() bool {
		return api.Get(t.Context(), client.ObjectKeyFromObject(web), web) == nil && web.Status.ReadyReplicas == 3
	})
}

func TestWebhookAndSchemaRefuse(t *testing.T) {
	name := namespace(t)
	err := api.Create(t.Context(), widget(name, "a", -1))
	if err == nil || !strings.Contains(err.Error(), "a size is never negative") {
		t.Fatalf("the webhook has not refused: %v", err)
	}
	if err := api.Create(t.Context(), widget(name, "a", 101)); !apierrors.IsInvalid(err) {
		t.Fatalf("the schema has not refused: %v", err)
	}
}

func TestUsersHaveTheirRights(t *testing.T) {
	name := namespace(t)
	user, err := env.AddUser(envtest.User{Name: "reader", Groups: []string{"readers"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := client.New(user.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.List(t.Context(), &corev1.SecretList{}, client.InNamespace(name)); !apierrors.IsForbidden(err) {
		t.Fatalf("without a role: %v", err)
	}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "reads"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "reads"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reads"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the role counts", func() bool {
		return other.List(t.Context(), &corev1.SecretList{}, client.InNamespace(name)) == nil
	})
}

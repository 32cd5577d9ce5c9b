package fleet

import (
	"fmt"
	"strings"
	"time"
)

// managed and external return documents that keep every rule.
func managed() Proxy {
	return Proxy{
		Name: "us-east1-a", Labels: map[string]string{"pool": "news"},
		Spec: Spec{
			Mode: Managed, Provider: "gce-main",
			Placement: &Placement{Region: "us-east1", Zone: "us-east1-b", MachineType: "e2-micro"},
			CloudInit: &CloudInit{Inline: "#cloud-config\n"},
		},
	}
}

func external() Proxy {
	return Proxy{Name: "partner-1", Spec: Spec{Mode: External, Endpoint: Endpoint{Host: "proxy.example.net"}}}
}

func of(p Proxy, edits ...func(*Proxy)) change {
	for _, edit := range edits {
		edit(&p)
	}
	return change{Proxy: p}
}

func after(before Accepted, c change) change {
	c.before = &before
	return c
}

func name(s string) func(*Proxy) { return func(p *Proxy) { p.Name = s } }

func label(k, v string) func(*Proxy) {
	return func(p *Proxy) { p.Labels = map[string]string{k: v} }
}

func labels(n int) func(*Proxy) {
	return func(p *Proxy) {
		p.Labels = map[string]string{}
		for i := range n {
			p.Labels[fmt.Sprint("k", i)] = "v"
		}
	}
}

func spec(edit func(*Spec)) func(*Proxy) { return func(p *Proxy) { edit(&p.Spec) } }

func mode(m Mode) func(*Proxy) { return spec(func(s *Spec) { s.Mode = m }) }

func provider(name string) func(*Proxy) { return spec(func(s *Spec) { s.Provider = name }) }

func placement(p Placement) func(*Proxy) { return spec(func(s *Spec) { s.Placement = &p }) }

func cloudInit(c CloudInit) func(*Proxy) { return spec(func(s *Spec) { s.CloudInit = &c }) }

func host(h string) func(*Proxy) { return spec(func(s *Spec) { s.Endpoint.Host = h }) }

func port(n int32) func(*Proxy) { return spec(func(s *Spec) { s.Endpoint.Port = n }) }

func credentials(r SecretRef) func(*Proxy) {
	return spec(func(s *Spec) { s.Endpoint.CredentialsSecretRef = &r })
}

func health(h HealthCheck) func(*Proxy) { return spec(func(s *Spec) { s.HealthCheck = &h }) }

func maxLeases(n int32) func(*Proxy) { return spec(func(s *Spec) { s.MaxLeases = &n }) }

func lifecycle(field func(*Lifecycle) **Duration, d time.Duration) func(*Proxy) {
	return spec(func(s *Spec) {
		l, v := Lifecycle{}, Duration(d)
		*field(&l) = &v
		s.Lifecycle = &l
	})
}

func provisionTimeout(d time.Duration) func(*Proxy) {
	return lifecycle(func(l *Lifecycle) **Duration { return &l.ProvisionTimeout }, d)
}

func replaceUnhealthyAfter(d time.Duration) func(*Proxy) {
	return lifecycle(func(l *Lifecycle) **Duration { return &l.ReplaceUnhealthyAfter }, d)
}

func maxAge(d time.Duration) func(*Proxy) {
	return lifecycle(func(l *Lifecycle) **Duration { return &l.MaxAge }, d)
}

func drainTimeout(d time.Duration) func(*Proxy) {
	return lifecycle(func(l *Lifecycle) **Duration { return &l.DrainTimeout }, d)
}

func each[T any](base func() Proxy, edit func(T) func(*Proxy), values ...T) []change {
	var out []change
	for _, v := range values {
		out = append(out, of(base(), edit(v)))
	}
	return out
}

var (
	l63  = strings.Repeat("a", 63)
	l64  = strings.Repeat("a", 64)
	l255 = strings.Repeat("a", 255)
	l256 = strings.Repeat("a", 256)
)

func target(url string) HealthCheck { return HealthCheck{URL: url} }

func zonesNamed(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = "us-east1-b"
	}
	return out
}

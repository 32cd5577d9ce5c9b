package provider_test

import (
	"fmt"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// A providers file with faults is read as far as it goes, and all of them are named.
func ExampleReadConfigs() {
	_, err := provider.ReadConfigs([]byte(`
- name: gce-main
  type: gcp
  maxInstance: 50
  gcp: {project: my-crawl-project}
- name: gce-main
  type: mock
  gcp: {project: my-crawl-project}
`))
	fmt.Println(err)
	// Output:
	// line 4: entry 1 "gce-main": maxInstance: is not known; an entry has name, type, maxInstances and the block gcp
	// line 6: entry 2 "gce-main": name: "gce-main" is the name of entry 1 "gce-main" already; give each entry its own
	// line 8: entry 2 "gce-main": gcp: this block does not belong to type mock; remove it, or change the type
}

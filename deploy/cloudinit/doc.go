// Package cloudinit holds the first-boot configurations that are shipped as examples, and the tests that run their proxies.
package cloudinit

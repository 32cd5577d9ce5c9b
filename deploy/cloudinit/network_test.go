package cloudinit

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inside tells the test binary that it runs in a network of its own.
const inside = "CLOUDINIT_TEST_INSIDE"

// TestInANetworkOfItsOwn runs each proxy where the metadata server, private hosts and a public one
// exist and listen, with the kernel's filter loaded as on a VM. It needs root.
func TestInANetworkOfItsOwn(t *testing.T) {
	for _, e := range examples {
		t.Run(e.pkg, func(t *testing.T) {
			if os.Getenv(inside) == e.pkg {
				e.checkInside(t)
				return
			}
			if os.Getenv(inside) != "" {
				t.Skip("another one's network")
			}
			needPackage(t, e.pkg, e.binary)
			needNetwork(t)
			reexec(t, e.pkg)
		})
	}
}

// needNetwork skips, in CI too, where the kernel lets us have no network of our own: containers often
// may not, and TestOnLoopback has run there.
func needNetwork(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a network of its own needs root")
	}
	needPackage(t, "nftables", "/usr/sbin/nft")
	needPackage(t, "iproute2", "/usr/bin/ip")
	if out, err := exec.Command("unshare", "-n", "-m", "true").CombinedOutput(); err != nil {
		t.Skip("no network of its own may be made here: " + lastLine(out))
	}
	if out, err := exec.Command("unshare", "-n", "nft", "add", "table", "inet", "x").CombinedOutput(); err != nil {
		t.Skip("the kernel has no nftables: " + lastLine(out))
	}
}

// reexec runs this test again in new network and mount namespaces, with addresses on the loopback
// interface and names in a hosts file of its own.
func reexec(t *testing.T, pkg string) {
	t.Helper()
	hosts := t.TempDir() + "/hosts"
	require.NoError(t, os.WriteFile(hosts, []byte(strings.Join([]string{
		"127.0.0.1 localhost", public + " origin.example", metadata + " metadata.google.internal metadata",
		metadata + " rebound.example", private[0] + " inner.example",
	}, "\n")+"\n"), 0o644))
	resolver := t.TempDir() + "/resolv.conf"
	require.NoError(t, os.WriteFile(resolver, []byte("nameserver 127.0.0.53\n"), 0o644))
	script := `set -e
mount --make-rprivate /
mount --bind "$1" /etc/hosts
mount --bind "$2" /etc/resolv.conf
ip link set lo up
binary=$3; shift 3
for a in "$@"; do ip addr add "$a/32" dev lo; done
exec "$binary" -test.run '^TestInANetworkOfItsOwn$' -test.v`
	binary, err := os.Executable()
	require.NoError(t, err)
	args := append([]string{"-n", "-m", "sh", "-c", script, "sh", hosts, resolver, binary, public, metadata}, private...)
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), inside+"="+pkg)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestInANetworkOfItsOwn/"+pkg, "%s", out)
}

func (e example) checkInside(t *testing.T) {
	forbidden := map[string]*counter{}
	for _, ip := range append([]string{metadata, "127.0.0.1"}, private...) {
		for _, port := range []string{"80", "443"} {
			forbidden[ip+":"+port] = listen(t, net.JoinHostPort(ip, port))
		}
	}
	listen(t, public+":443")
	listen(t, public+":80")
	smtp := listen(t, public+":25")
	serveNoNames(t)

	root := e.install(t, "crawler:"+e.password)
	out, err := configure(root)
	require.NoError(t, err, "%s", out)
	out, err = exec.Command("nft", "-f", root+"/etc/nftables.conf").CombinedOutput()
	require.NoError(t, err, "%s", out)
	// Clients come from elsewhere; the proxy itself has the public address.
	e.run(t, root, public+":3128")
	p := proxy{t: t, address: public + ":3128", user: "crawler", password: e.password}
	p.checkRefusals()
	for _, name := range []string{"rebound.example", "inner.example"} {
		p.refused(name + ":443")
		p.refusedPlain(name + ":80")
	}
	p.refused(public + ":25")
	p.checkAllowed(public + ":443")
	p.checkAllowed("origin.example:443")
	for at, c := range forbidden {
		assert.Zero(t, c.count(), "%s was reached", at)
	}
	assert.Zero(t, smtp.count())
}

// serveNoNames is the local resolver of a VM, and knows no name: those of the test are in the hosts
// file. That it can be asked shows that the kernel's filter lets names be resolved.
func serveNoNames(t *testing.T) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.53:53")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if n >= 12 {
				buf[2] |= 0x80                  // an answer
				buf[3] = buf[3]&0xf0 | 0x80 | 3 // no such name
				_, _ = conn.WriteTo(buf[:n], from)
			}
		}
	}()
}

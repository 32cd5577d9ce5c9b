// Package gcloud starts the Firestore and Pub/Sub emulators of an installed Google Cloud CLI.
package gcloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"crawl.example.com/proxyfleet/emulator/proc"
)

// Install is where the emulators' programs are.
type Install struct {
	Java      string // path of the java program
	Firestore string // path of the Firestore emulator's jar
	PubSub    string // path of the Pub/Sub emulator's jar
	Cache     string // folder for class-data archives; empty: start without
}

// jars are the emulators below the CLI's root, as release 528 lays them out.
var jars = map[string]string{
	"cloud-firestore-emulator": "platform/cloud-firestore-emulator/cloud-firestore-emulator.jar",
	"pubsub-emulator":          "platform/pubsub-emulator/lib/cloud-pubsub-emulator-*-all.jar",
}

// Find looks for Java and for the CLI's two emulators. The error names all that is missing and how
// to get it.
func Find() (Install, error) {
	var in Install
	var missing []error
	java, err := exec.LookPath("java")
	if err != nil {
		missing = append(missing, errors.New("java is not installed (Debian: apt-get install default-jre-headless)"))
	}
	in.Java = java
	for _, jar := range []struct {
		component string
		path      *string
	}{{"cloud-firestore-emulator", &in.Firestore}, {"pubsub-emulator", &in.PubSub}} {
		*jar.path = findJar(jars[jar.component])
		if *jar.path == "" {
			missing = append(missing, fmt.Errorf("the Google Cloud CLI's %s is not installed (gcloud components install %s, or Debian package google-cloud-cli-%s)",
				jar.component, jar.component, map[string]string{"cloud-firestore-emulator": "firestore-emulator", "pubsub-emulator": "pubsub-emulator"}[jar.component]))
		}
	}
	if dir, err := os.UserCacheDir(); err == nil {
		in.Cache = filepath.Join(dir, "proxyfleet")
	}
	return in, errors.Join(missing...)
}

func findJar(pattern string) string {
	for _, root := range roots() {
		if found, _ := filepath.Glob(filepath.Join(root, pattern)); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	return ""
}

// roots are the places where the CLI may be; asking gcloud itself takes a second.
func roots() []string {
	var dirs []string
	if root := os.Getenv("CLOUDSDK_ROOT_DIR"); root != "" {
		dirs = append(dirs, root)
	}
	if gcloud, err := exec.LookPath("gcloud"); err == nil {
		if real, err := filepath.EvalSymlinks(gcloud); err == nil {
			dirs = append(dirs, filepath.Dir(filepath.Dir(real)))
		}
	}
	return append(dirs, "/usr/lib/google-cloud-sdk", "/usr/share/google-cloud-sdk")
}

// Emulator is a running emulator.
type Emulator struct {
	*proc.Process
	Host string // host:port

	archive string // archive that this run will leave
	partial string
}

// stopGrace leaves a first run the time to write its class-data archive.
const stopGrace = 15 * time.Second

// Stop ends the emulator and waits for it.
func (e *Emulator) Stop() {
	e.Process.Stop(stopGrace)
	if e.partial != "" {
		if info, err := os.Stat(e.partial); err == nil && info.Size() > 0 {
			_ = os.Rename(e.partial, e.archive)
		}
		_ = os.Remove(e.partial)
	}
}

// StartFirestore starts the Firestore emulator on a free port and returns when it answers.
func (in Install) StartFirestore(ctx context.Context) (*Emulator, error) {
	return in.start(ctx, "Firestore emulator", in.Firestore, func(port string) []string {
		return []string{"-cp", in.Firestore, "com.google.cloud.datastore.emulator.firestore.CloudFirestore", "start", "--host=127.0.0.1", "--port=" + port}
	}, answersOK)
}

// StartPubSub starts the Pub/Sub emulator on a free port and returns when it answers.
func (in Install) StartPubSub(ctx context.Context) (*Emulator, error) {
	return in.start(ctx, "Pub/Sub emulator", in.PubSub, func(port string) []string {
		return []string{"-jar", in.PubSub, "--host=127.0.0.1", "--port=" + port}
	}, answersOK)
}

// start tries again with another port, since a port that was free may be taken meanwhile.
func (in Install) start(ctx context.Context, name, jar string, args func(port string) []string, check func(context.Context, string) error) (*Emulator, error) {
	var err error
	for range 3 {
		var e *Emulator
		if e, err = in.startOnce(ctx, name, jar, args, check); err == nil {
			return e, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

func (in Install) startOnce(ctx context.Context, name, jar string, args func(string) []string, check func(context.Context, string) error) (*Emulator, error) {
	port, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	e := &Emulator{Host: fmt.Sprintf("127.0.0.1:%d", port)}
	flags := append(in.javaFlags(e, jar), args(fmt.Sprint(port))...)
	e.Process, err = proc.Start(proc.Command{Name: name, Path: in.Java, Args: flags})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	if err := e.WaitReady(ctx, func(ctx context.Context) error { return check(ctx, e.Host) }); err != nil {
		e.Process.Stop(time.Second)
		return nil, err
	}
	return e, nil
}

// javaFlags make the start quick: with the archive that the first run leaves when it ends, a JVM
// needs half the time.
func (in Install) javaFlags(e *Emulator, jar string) []string {
	flags := []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"}
	archive := in.archivePath(jar)
	if archive == "" || os.MkdirAll(in.Cache, 0o755) != nil {
		return flags
	}
	if _, err := os.Stat(archive); err == nil {
		return append(flags, "-XX:SharedArchiveFile="+archive, "-Xlog:disable", "-Xlog:all=error:stderr")
	}
	e.archive, e.partial = archive, fmt.Sprintf("%s.%d-%d", archive, os.Getpid(), time.Now().UnixNano())
	return append(flags, "-XX:ArchiveClassesAtExit="+e.partial, "-Xlog:disable", "-Xlog:all=error:stderr")
}

// archivePath names the archive after all that makes it invalid: program and jar.
func (in Install) archivePath(jar string) string {
	h := sha256.New()
	for _, path := range []string{in.Java, jar} {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return ""
		}
		info, err := os.Stat(real)
		if err != nil {
			return ""
		}
		fmt.Fprintln(h, real, info.Size(), info.ModTime().UnixNano())
	}
	if in.Cache == "" {
		return ""
	}
	return filepath.Join(in.Cache, "classes-"+hex.EncodeToString(h.Sum(nil)[:8])+".jsa")
}

// answersOK is the readiness check of both: they answer GET / with 200.
func answersOK(ctx context.Context, host string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	_ = conn.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

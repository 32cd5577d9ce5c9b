package reconcile

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"crawl.example.com/proxyfleet/pkg/fleet"
	"crawl.example.com/proxyfleet/pkg/provider"
	"crawl.example.com/proxyfleet/pkg/provider/mock"
	"crawl.example.com/proxyfleet/pkg/store"
	"crawl.example.com/proxyfleet/pkg/store/memory"
)

var (
	chaosSeed  = flag.Uint64("chaos.seed", 0, "replay this one seed of the chaos test, and tell what happens")
	chaosSeeds = flag.Int("chaos.seeds", 1000, "how many seeds the chaos test runs")
)

// chaos is one seed: a fleet, two clouds, and a scheduler that decides about every call of every run.
type chaos struct {
	rng   *rand.Rand
	store hands
	began time.Time
	step  int
	trace func(format string, args ...any)

	effects sync.Mutex // held while a call takes effect
	mu      sync.Mutex
	waiting []*pending
	lates   []late
	calm    bool // every call works at once

	clouds  []*watched
	players []*player
	holder  *player
	names   []string

	uids     map[string]string   // documents that ever were, by uid
	wiped    map[string][]string // live instances when a status was lost, by uid
	meant    map[string][]string // what a lost status named, by uid
	wipedAt  map[string]int      // the first run that begins after it
	vanished map[string]time.Time
	spoilt   map[string]string
	made     map[string]bool
	first    map[string]bool // documents whose first write was lost on purpose

	leases    map[string]lease
	leased    int
	copied    time.Time
	copy      map[string]place
	endOutage func()

	faults                                                                            []string
	duplicates, overcap, foreign, cut, unlocked, overleased, leaked, restless, frozen int
}

const foreignOwner = "somebody-else"

func newChaos(seed uint64, s hands) *chaos {
	c := &chaos{
		rng: rand.New(rand.NewPCG(seed, 1)), store: s, began: time.Now(), trace: func(string, ...any) {},
		names: []string{"a", "b", "c", "d", "e"}, uids: map[string]string{}, wiped: map[string][]string{}, meant: map[string][]string{}, wipedAt: map[string]int{}, vanished: map[string]time.Time{},
		spoilt: map[string]string{}, made: map[string]bool{}, first: map[string]bool{}, leases: map[string]lease{},
	}
	for _, w := range []*watched{{name: "main", max: 3}, {name: "other"}} {
		cloud, err := mock.Open(mock.Settings{ProvisionDelay: 40 * time.Second, StopDelay: 20 * time.Second, PurgeDelay: 10 * time.Second}, mock.WithoutListener())
		if err != nil {
			panic(err)
		}
		w.Cloud, w.chaos, w.shown = cloud, c, map[string]bool{}
		for n := range int64(2) {
			cloud.Place(provider.Instance{Name: fmt.Sprint("proxy-foreign", n), Owner: foreignOwner, UID: "theirs", Incarnation: n})
		}
		c.clouds = append(c.clouds, w)
	}
	c.holder = &player{id: -1}
	return c
}

// reconciler is a process that runs once.
func (c *chaos) reconciler() (*player, *Reconciler) {
	p := &player{chaos: c, id: len(c.players)}
	c.players = append(c.players, p)
	accounts := map[string]Account{}
	for _, w := range c.clouds {
		accounts[w.name] = Account{Provider: playerCloud{p, w}, MaxInstances: w.max}
	}
	atOnce := 1 + 3*(p.id%2)
	if c.calm {
		atOnce = 1 // nobody else decides about the order now
	}
	r := New(Config{
		Store: playerStore{c.store, p}, Providers: accounts, Owner: testOwner, Database: testDatabase, Concurrency: atOnce,
		Random: func() float64 { return 0.5 }, Holder: func() string { return fmt.Sprint("run-", p.id) },
	})
	if !c.calm {
		r.onVisit = func(ctx context.Context, name string) { c.gate(ctx, p, "visit "+name) }
	}
	return p, r
}

// begin starts a run in the background.
func (c *chaos) begin() {
	p, r := c.reconciler()
	go func() {
		s, err := r.Run(own(), time.Now())
		c.mu.Lock()
		defer c.mu.Unlock()
		p.done, p.sum, p.err = true, s, err
	}()
}

// active counts the runs whose process is alive and not done.
func (c *chaos) active() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.players {
		if !p.done && !p.dead {
			n++
		}
	}
	return n
}

// pause is the time to the next run. While a dead one holds the lock there is little to see.
func (c *chaos) pause() {
	c.mu.Lock()
	locked := len(c.players) > 0 && c.players[len(c.players)-1].sum.Skipped != ""
	c.mu.Unlock()
	if locked {
		time.Sleep(time.Duration(c.rng.IntN(120)) * time.Second)
	}
	c.advance()
}

// advance moves the clock: mostly a little, sometimes beyond every deadline.
func (c *chaos) advance() {
	d := time.Duration(c.rng.IntN(4000)) * time.Millisecond
	switch c.rng.IntN(20) {
	case 0:
		d = time.Duration(c.rng.IntN(400)) * time.Second
	case 1, 2, 3:
		d = time.Duration(20+c.rng.IntN(60)) * time.Second
	}
	time.Sleep(d)
}

// decide throws the dice for one call.
func (c *chaos) decide(w *pending) fate {
	verb, name, _ := strings.Cut(w.label, " ")
	if verb == "visit" {
		return fateDo
	}
	if verb == "WriteStatus" && !c.first[name] {
		c.first[name] = true
		return fateConflict
	}
	switch n := c.rng.IntN(100); {
	case n < 1:
		return fateCrash
	case n < 4 && (verb == "WriteStatus" || verb == "WriteShard"):
		return fateConflict
	case n < 7:
		return fateRefuse
	case verb == "Create" || verb == "Delete":
		if n < 37 { // three in ten replies are lost
			return fateLose
		}
	case n < 12:
		return fateLose
	}
	return fateDo
}

// resolve lets one waiting call have its fate.
func (c *chaos) resolve(w *pending) {
	f := c.decide(w)
	c.trace("run %d: %s -> %d", w.player.id, w.label, f)
	if f == fateCrash {
		c.kill(w.player)
		f = fateCrashed
		if c.rng.IntN(2) == 0 { // dead after the call rather than before
			f = fateLose
		}
	}
	w.fate <- f
}

// kill ends a process: none of its calls has any effect from now on.
func (c *chaos) kill(p *player) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.dead = true
	kept := c.waiting[:0]
	for _, w := range c.waiting {
		if w.player == p {
			w.fate <- fateCrashed
			continue
		}
		kept = append(kept, w)
	}
	c.waiting = kept
}

// storm is the chaotic part of a seed.
func (c *chaos) storm(steps int) {
	for range 3 {
		c.addProxy()
	}
	for c.step = range steps {
		synctest.Wait()
		c.runLates(false)
		switch n := c.rng.IntN(100); {
		case n < 72:
			if w := c.next(); w != nil {
				c.resolve(w)
				continue
			}
			c.pause()
			c.begin()
		case n < 78:
			c.advance()
		case n < 80 && c.active() < 2:
			c.begin()
		default:
			c.happen()
		}
	}
}

// settle ends all trouble and runs until nothing changes any more.
func (c *chaos) settle() {
	for synctest.Wait(); ; synctest.Wait() {
		w := c.next()
		if w == nil {
			break
		}
		w.fate <- fateDo
	}
	c.mu.Lock()
	c.calm = true
	c.mu.Unlock()
	c.runLates(true)
	c.heal()
	quiet := 0
	for n := range 120 {
		c.step = 100000 + n
		time.Sleep([]time.Duration{30 * time.Second, 12 * time.Minute}[n%2])
		before := c.picture()
		_, r := c.reconciler()
		s, err := r.Run(own(), time.Now())
		c.trace("settle %d: %v %+v", n, err, s)
		c.judgeAll("")
		c.healLatched()
		if s.OrphansFrozen && n > 8 {
			c.confirmOrphans()
		}
		if c.picture() == before {
			quiet++
		} else {
			quiet = 0
		}
		if quiet >= 8 && n > 12 {
			return
		}
	}
	c.broken(&c.restless, "still busy after 120 runs: %s", c.picture())
}

// heal makes the world a good place.
func (c *chaos) heal() {
	for _, w := range c.clouds {
		w.SetStockOut()
		w.HideZones()
		w.SetListLag(0)
		w.SetCapacity(0)
	}
	if c.endOutage != nil {
		c.endOutage()
	}
	for _, name := range c.names {
		p, err := c.store.GetProxy(own(), name)
		if err != nil {
			continue
		}
		of := p.Spec.Provider
		if p.Status.Accepted != nil {
			of = p.Status.Accepted.Provider
		}
		s := c.randomSpec(of)
		s["paused"], s["lifecycle"] = false, map[string]any{"drainTimeout": "2m"}
		_, _ = c.store.EditProxy(own(), name, store.Edit{Spec: s}, time.Time{})
	}
}

// healLatched does what an operator does about a refusal that is over.
func (c *chaos) healLatched() {
	for _, name := range c.names {
		if p, err := c.store.GetProxy(own(), name); err == nil && p.Status.Retry != nil && p.Status.Retry.Class == classPermanent {
			_, _ = c.store.EditProxy(own(), name, store.Edit{RotateTime: time.Now()}, time.Time{})
		}
	}
}

// confirmOrphans does what an operator does when so many documents were removed that the sweep has
// stopped: look, and delete what nobody wants.
func (c *chaos) confirmOrphans() {
	for _, w := range c.clouds {
		for _, i := range w.Instances() {
			if _, found := c.document(i.UID); i.Owner == testOwner && !found {
				c.frozen++
				_ = w.Delete(own(), i.Ref())
			}
		}
	}
}

func (c *chaos) judgeAll(sick string) {
	shards, err := c.store.ReadCatalog(own())
	if err != nil {
		return
	}
	proxies, err := c.store.ListProxies(own())
	if err != nil {
		return
	}
	for _, p := range proxies {
		judge(own(), c.store, places(shards), p, p.Name == sick, canonical(time.Now()))
	}
}

// picture is what must come to rest: the instances there are and what documents say of them.
func (c *chaos) picture() string {
	var b strings.Builder
	for _, w := range c.clouds {
		for _, i := range w.Instances() {
			fmt.Fprintln(&b, w.name, i.Name, i.State)
		}
	}
	proxies, err := c.store.ListProxies(own())
	if err != nil {
		return err.Error()
	}
	for _, p := range proxies {
		fmt.Fprintln(&b, p.Name, p.Status.Phase, p.Status.Incarnation, p.Status.Replacing, p.Status.Retry)
	}
	return b.String()
}

// verify checks the end: one running instance for each document and nothing else of ours.
func (c *chaos) verify() {
	want := map[string]string{}
	proxies, err := c.store.ListProxies(own())
	if err != nil {
		c.broken(&c.leaked, "list: %v", err)
		return
	}
	counts := map[string]int{}
	for _, p := range proxies {
		counts[providerOf(p)]++
		if !p.DeleteTime.IsZero() {
			c.broken(&c.leaked, "%s is still there: %+v", p.Name, p.Status)
			continue
		}
		if i := p.Status.Instance; i != nil {
			want[i.Name] = p.Name
		}
		if p.Status.Phase != fleet.PhaseRunning && !(providerOf(p) == "main" && p.Status.Phase == fleet.PhasePending) {
			c.broken(&c.leaked, "%s is %s: %+v %+v", p.Name, p.Status.Phase, p.Status.Retry, p.Status.Conditions)
		}
	}
	for _, w := range c.clouds {
		foreign, running := 0, 0
		for _, i := range w.Instances() {
			switch {
			case i.Owner == foreignOwner:
				foreign++
			case want[i.Name] == "":
				c.broken(&c.leaked, "%s of %s is nobody's: %+v", i.Name, c.uids[i.UID], i)
			case i.State == provider.StateRunning:
				running++
			}
		}
		if foreign != 2 {
			c.broken(&c.foreign, "%d instances of somebody else are left of 2", foreign)
		}
		if full := counts[w.name]; running < full && (w.max == 0 || running < w.max) {
			c.broken(&c.leaked, "%d instances run at %s for %d documents", running, w.name, full)
		}
	}
	c.verifyCatalog(proxies)
}

func (c *chaos) verifyCatalog(proxies []fleet.Proxy) {
	shards, err := c.store.ReadCatalog(own())
	if err != nil {
		c.broken(&c.leaked, "read catalog: %v", err)
		return
	}
	at := places(shards)
	for _, p := range proxies {
		e, ok := at[p.Name]
		if !ok {
			c.broken(&c.leaked, "%s is not in the catalog", p.Name)
			continue
		}
		delete(at, p.Name)
		if p.Status.Phase == fleet.PhaseRunning && p.Spec.MaxLeasesOrDefault() > 0 && (!e.entry.Ready() || e.entry.Capacity != p.Spec.MaxLeasesOrDefault()) {
			c.broken(&c.leaked, "the catalog says of %s: %+v, the document: %+v %+v", p.Name, e.entry, p.Status.Health, p.Status.Conditions)
		}
	}
	for name, e := range at {
		c.broken(&c.leaked, "%s is in the catalog still: %+v", name, e.entry)
	}
}

// run is one seed from its beginning to its end.
func (c *chaos) run(steps int) {
	c.storm(steps)
	c.settle()
	c.verify()
}

// memoryHands is a memory store in the hands of an operator.
type memoryHands struct{ *memory.Store }

func (m memoryHands) wipe(name string)   { m.WipeStatus(name) }
func (m memoryHands) remove(name string) { m.Remove(name) }

// TestChaos runs many seeds of everything that can go wrong and counts broken promises.
func TestChaos(t *testing.T) {
	if *chaosSeed != 0 {
		c := playSeed(t, *chaosSeed, t.Logf)
		require.Empty(t, c.faults)
		return
	}
	seeds := *chaosSeeds / slower
	if testing.Short() {
		seeds = min(seeds, 60)
	}
	var next, bad atomic.Uint64
	var mu sync.Mutex
	var total chaos
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := next.Add(1); seed <= uint64(seeds) && bad.Load() < 5; seed = next.Add(1) {
				c := playSeed(t, seed, nil)
				mu.Lock()
				total.add(c)
				mu.Unlock()
				if len(c.faults) > 0 {
					bad.Add(1)
					t.Errorf("seed %d, replay with -run TestChaos -chaos.seed=%d:\n%s", seed, seed, strings.Join(c.faults, "\n"))
				}
			}
		})
	}
	wg.Wait()
	fmt.Printf("runs=%d duplicates=%d leaked=%d overcap=%d cut=%d foreign=%d unlocked=%d overleased=%d restless=%d\n",
		min(next.Load(), uint64(seeds)), total.duplicates, total.leaked, total.overcap, total.cut, total.foreign, total.unlocked, total.overleased, total.restless)
	t.Logf("%d instances were made, %d leases taken, %d orphans left to an operator", len(total.made), total.leased, total.frozen)
	assert.Zero(t, bad.Load())
}

// TestChaosReplays: a seed plays the same every time, so that a failing one can be looked into.
func TestChaosReplays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		var first []string
		for again := range 2 {
			var trace []string
			playSeed(t, 100+seed, func(format string, args ...any) { trace = append(trace, fmt.Sprintf(format, args...)) })
			if again == 0 {
				first = trace
				continue
			}
			require.Greater(t, len(first), 300)
			for i, line := range first {
				require.Less(t, i, len(trace), "seed %d ends early the second time", seed)
				require.Equal(t, line, trace[i], "seed %d, line %d", seed, i)
			}
		}
	}
}

func (c *chaos) add(o *chaos) {
	c.duplicates, c.leaked, c.overcap, c.cut = c.duplicates+o.duplicates, c.leaked+o.leaked, c.overcap+o.overcap, c.cut+o.cut
	c.foreign, c.unlocked, c.overleased, c.restless = c.foreign+o.foreign, c.unlocked+o.unlocked, c.overleased+o.overleased, c.restless+o.restless
	c.leased, c.frozen = c.leased+o.leased, c.frozen+o.frozen
	if c.made == nil {
		c.made = map[string]bool{}
	}
	for name := range o.made {
		c.made[name] = true
	}
}

// chaosSteps is how many decisions the scheduler takes in one seed: some twenty runs.
const chaosSteps = 700

func playSeed(t *testing.T, seed uint64, trace func(string, ...any)) (c *chaos) {
	synctest.Test(t, func(*testing.T) {
		c = newChaos(seed, memoryHands{memory.New(time.Now)})
		if trace != nil {
			c.trace = func(format string, args ...any) { trace("%s "+format, append([]any{time.Since(c.began)}, args...)...) }
		}
		c.run(chaosSteps)
	})
	return c
}

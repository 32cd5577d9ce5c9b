package mock

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Create makes the instance that req describes, or returns it when it is there.
func (c *Cloud) Create(ctx context.Context, req provider.CreateRequest) (provider.Instance, error) {
	if err := c.begin(ctx, VerbCreate); err != nil {
		return provider.Instance{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if e := c.faults.next(VerbCreate); e != nil {
		return provider.Instance{}, about(*e, VerbCreate, req.Ref())
	}
	if err := check(req); err != nil {
		return provider.Instance{}, about(provider.Error{Class: provider.ErrPermanent, Reason: reasonInvalid, Err: err}, VerbCreate, req.Ref())
	}
	made, err := c.create(req, now)
	if err != nil {
		return provider.Instance{}, err
	}
	if c.faults.loses(VerbCreate) {
		return provider.Instance{}, about(lostReply, VerbCreate, req.Ref())
	}
	return made, nil
}

func (c *Cloud) create(req provider.CreateRequest, now time.Time) (provider.Instance, error) {
	if _, seen, ok := c.find(req.Name, now); ok {
		if seen.Owner != req.Owner || seen.UID != req.UID || seen.Incarnation != req.Incarnation || seen.SpecHash != req.SpecHash {
			return provider.Instance{}, about(nameTaken, VerbCreate, provider.Ref{Name: req.Name, Zone: seen.Zone})
		}
		return seen, nil
	}
	if e := c.room(req, now); e != nil {
		return provider.Instance{}, about(*e, VerbCreate, req.Ref())
	}
	c.made++
	i := &instance{
		Instance: provider.Instance{
			Name: req.Name, Zone: req.Zone, Owner: req.Owner, UID: req.UID, Incarnation: req.Incarnation,
			SpecHash: req.SpecHash, CreateTime: now, Operation: "operation-" + strconv.Itoa(c.made),
		},
		port:        req.Port,
		credentials: c.settings.BasicAuth,
		failure:     c.faults.launchFailure(req),
	}
	c.add(i)
	seen, exists := c.look(i, now)
	if !exists { // its launch fails so soon that only a later look may say so
		seen = i.Instance
		seen.State = provider.StateProvisioning
	}
	return seen, nil
}

func (c *Cloud) add(i *instance) {
	c.byName[i.Name] = i
	c.order = append(c.order, i)
}

// room returns why the cloud has no room for req now, nil when it has.
func (c *Cloud) room(req provider.CreateRequest, now time.Time) *provider.Error {
	if wait := c.faults.overLimit(now); wait > 0 {
		return &provider.Error{Class: provider.ErrTransient, Reason: reasonRate, RetryAfter: wait, Err: errors.New("too many creates")}
	}
	if c.faults.out[req.Zone] {
		return &provider.Error{Class: provider.ErrQuotaExceeded, Reason: reasonStockOut, StockOut: true, Err: errors.New("the zone has no machines left")}
	}
	if c.faults.capacity > 0 && len(c.all(now, anybodys)) >= c.faults.capacity {
		return &provider.Error{Class: provider.ErrQuotaExceeded, Reason: reasonQuota, Err: fmt.Errorf("limit of %d instances", c.faults.capacity)}
	}
	if !c.silent && !c.closed {
		if err := free(req.Port); err != nil {
			return &provider.Error{Class: provider.ErrTransient, Reason: reasonPort, Err: err}
		}
	}
	c.faults.count(now)
	return nil
}

// What a real cloud takes as a name and as a label value: a request that it would refuse is refused
// here.
var (
	resourceName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	labelValue   = regexp.MustCompile(`^[-_a-z0-9]{0,63}$`)
)

// maxUserData is the limit of Compute Engine for one metadata value: 256 KiB.
const maxUserData = 256 << 10

// check reports all that is wrong with a request.
func check(req provider.CreateRequest) error {
	var wrong []error
	fault := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	fault(!resourceName.MatchString(req.Name), "name %q is not an instance name", req.Name)
	fault(req.Owner == "", "an owner is needed")
	for _, label := range [][2]string{{"owner", req.Owner}, {"uid", req.UID}, {"spec hash", req.SpecHash}, {"proxy name", req.ProxyName}} {
		fault(!labelValue.MatchString(label[1]), "%s %q is not a label value", label[0], label[1])
	}
	fault(req.Incarnation < 1, "incarnation %d: must be 1 or more", req.Incarnation)
	fault(req.Port < 1 || req.Port > 65535, "port %d: must be between 1 and 65535", req.Port)
	fault(len(req.UserData) > maxUserData, "user data has %d bytes, at most %d", len(req.UserData), maxUserData)
	return errors.Join(wrong...)
}

package gce

import (
	"regexp"
	"strconv"
	"strings"

	"crawl.example.com/proxyfleet/pkg/provider"
)

// Labels of our own. They are what makes an instance ours, so they are set with the insert itself and
// never changed.
const (
	labelPrefix      = "proxyfleet-"
	labelOwner       = labelPrefix + "owner"
	labelUID         = labelPrefix + "uid"
	labelIncarnation = labelPrefix + "incarnation"
	labelSpecHash    = labelPrefix + "spec"
	labelProxy       = labelPrefix + "proxy"
)

// The API's own rules. The client library escapes no part of a path, so whatever goes into one is
// checked against these first.
var (
	resourceName   = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	zoneName       = regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-[a-z][a-z0-9]*$`)
	projectID      = regexp.MustCompile(`^([a-z0-9.-]+\.[a-z]+:)?[a-z][-a-z0-9]{4,28}[a-z0-9]$`)
	resourcePath   = regexp.MustCompile(`^(https://[a-z0-9.-]+/compute/v1/)?(projects|global)(/[a-zA-Z0-9][a-zA-Z0-9.:_-]*)+$`)
	serviceAccount = regexp.MustCompile(`^[a-z0-9][-a-z0-9.]*@[a-z0-9.-]+$`)
	labelKey       = regexp.MustCompile(`^[a-z][-_a-z0-9]{0,62}$`)
	labelValue     = regexp.MustCompile(`^[-_a-z0-9]{0,63}$`)
	operationName  = regexp.MustCompile(`^[a-zA-Z0-9][-_a-zA-Z0-9]{0,127}$`)
)

// labels returns the labels of the instance that req describes.
func (s settings) labels(req provider.CreateRequest) map[string]string {
	out := map[string]string{
		labelOwner:       req.Owner,
		labelUID:         req.UID,
		labelIncarnation: strconv.FormatInt(req.Incarnation, 10),
		labelSpecHash:    req.SpecHash,
		labelProxy:       req.ProxyName,
	}
	for key, value := range s.Labels {
		out[key] = value
	}
	return out
}

// regionOf returns the region of a zone.
func regionOf(zone string) string { return zone[:max(strings.LastIndexByte(zone, '-'), 0)] }

// base returns the last part of a path or URL.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// operationRef names an operation for provider.Ref: the zone belongs to it, since operations are
// asked for by zone and the caller's zone is only a hint.
func operationRef(zone, name string) string { return zone + "/" + name }

// parseOperation undoes operationRef; ok is false for anything else.
func parseOperation(ref string) (zone, name string, ok bool) {
	zone, name, ok = strings.Cut(ref, "/")
	return zone, name, ok && zoneName.MatchString(zone) && operationName.MatchString(name)
}

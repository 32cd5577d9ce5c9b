package fleet

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// digest returns the first n characters of lower-case base32 of SHA-256 over the parts; the parts
// cannot run into each other.
func digest(n int, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p) // lengths, so that ("ab","c") differs from ("a","bc")
	}
	return lowerBase32.EncodeToString(h.Sum(nil))[:n]
}

// UID returns the identity of a document: derived from where it is and when the store created it, so
// that a lost status leads to the same uid, and a document deleted and made again to another one.
func UID(database, path string, createTime time.Time) string {
	return digest(26, database, path, createTime.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano))
}

// Owner returns the tag that instances of one fleet carry: at most 63 lower-case letters, digits and
// hyphens, as labels of all clouds take them. People can read it where project and database are short
// enough; a digest of both keeps it unique.
func Owner(project, database string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, project+"--"+strings.Trim(database, "()")), "-")
	name = strings.TrimRight(name[:min(len(name), 50)], "-")
	return strings.TrimPrefix(name+"-"+digest(12, project, database), "-")
}

// SpecHash returns a hash of all that needs a new VM when it changes: provider, placement,
// cloud-init and port.
func SpecHash(s Spec) string {
	var placement Placement
	if s.Placement != nil {
		placement = *s.Placement
	}
	var inline, secret, key string
	if s.CloudInit != nil {
		inline = s.CloudInit.Inline
		if r := s.CloudInit.SecretRef; r != nil {
			secret, key = r.Name, r.Key
		}
	}
	zones := strings.Join(s.ZonesInOrder(), ",")
	port := strconv.Itoa(int(Proxy{Spec: s}.EffectivePort()))
	spot := strconv.FormatBool(placement.Spot)
	return digest(16, s.Provider, placement.Region, zones, placement.MachineType, spot, inline, secret, key, port)
}

// QuarantineKey returns the form in which a target host is a key of Entry.Quarantine.
func QuarantineKey(host string) string {
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// AddEvent appends one event and drops the oldest beyond MaxEvents.
func (s *Status) AddEvent(now time.Time, reason, message string) {
	events := append(append([]Event(nil), s.Events...), Event{Time: now.UTC().Truncate(time.Microsecond), Reason: reason, Message: message})
	s.Events = events[max(0, len(events)-MaxEvents):]
}

package provider

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// nameLength is how much of the hash a name carries: 80 bits, so that two of a million names are
// alike with a probability of 4 in 10^13.
const nameLength = 16

// InstanceName returns the name of the incarnation-th instance of the Proxy with this uid: 22
// characters, an RFC 1035 label, the same in every process. So an instance whose record was lost is
// found again, and asking for it twice asks for one.
func InstanceName(uid string, incarnation int64) string {
	sum := sha256.Sum256([]byte(uid + "\x00" + strconv.FormatInt(incarnation, 10)))
	return "proxy-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:nameLength])
}

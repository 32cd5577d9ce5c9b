package fleet

import "strings"

// Fault is one thing that is wrong with a document.
type Fault struct {
	Rule    string // R1..R7 for the seven rules, a word for ranges and formats, empty for what did not decode
	Path    string // field path, such as spec.endpoint.port
	Value   string // the offending value as people wrote it; empty where it says nothing or may be secret
	Message string // what must hold, as "must be ..."
}

// Error reads "spec.endpoint.port: 70000: must be between 1 and 65535"; parts that are empty are left out.
func (f Fault) Error() string {
	var parts []string
	for _, part := range []string{f.Path, f.Value, f.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Faults are all faults of one document. As an error it has one line per fault.
type Faults []Fault

// Error joins the faults, one a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns fs as an error, nil when there is no fault.
func (fs Faults) Err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

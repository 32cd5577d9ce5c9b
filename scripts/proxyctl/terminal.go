package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// isTerminal reports whether a person looks at, or types into, what stream is.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// columns is how many characters a line of the terminal w has; 80 where that cannot be told.
func columns(w any) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// printable makes text fit for one line of a terminal: whoever wrote it moves no cursor there.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// printableLines is printable for text of several lines.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}

// paint colours a state, where a person looks and has not said no (no-color.org).
func (c *cli) paint(out io.Writer, state, text string) string {
	if !c.colours && (!isTerminal(out) || os.Getenv("NO_COLOR") != "") {
		return text
	}
	code := "33" // yellow: on its way, or held back
	switch state {
	case "Ready", "ok":
		code = "32"
	case "Rejected", "Failed", "Unhealthy", "FAIL":
		code = "31"
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// count writes how many there are of a thing.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

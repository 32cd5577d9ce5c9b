package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"crawl.example.com/proxyfleet/pkg/fleet"
)

// table prints rows in columns. Its columns only grow, so that rows which follow later stand below
// the earlier ones.
type table struct {
	wide   bool
	headed bool
	widths []int
}

func (c *cli) tabular(wide bool) func(io.Writer, []fleet.Proxy) error {
	t := &table{wide: wide}
	return func(out io.Writer, proxies []fleet.Proxy) error {
		rows := [][]string{}
		if !t.headed {
			t.headed = true
			rows = append(rows, t.head())
		}
		for _, p := range proxies {
			rows = append(rows, c.row(p, wide))
		}
		t.print(out, rows, func(state, text string) string { return c.paint(c.out, state, text) })
		return nil
	}
}

func (t *table) head() []string {
	head := []string{"NAME", "STATE", "SINCE", "PROBE", "MS", "MODE", "AGE"}
	if t.wide {
		head = append(head, "ADDRESS", "ZONE", "INSTANCE", "LABELS", "WHY")
	}
	return head
}

// stateColumn is the one that is coloured.
const stateColumn = 1

func (t *table) print(out io.Writer, rows [][]string, paint func(state, text string) string) {
	for _, row := range rows {
		for i, cell := range row {
			if i == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			padding := strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+2)
			if i == stateColumn && cell != "STATE" {
				cell = paint(cell, cell)
			}
			line.WriteString(cell + padding)
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
}

package fleet

import "strings"

// suggestion names the known key that was probably meant; empty when none is near.
func suggestion(key string, known map[string]int) string {
	best, nearest := "", 3 // two slips are a slip; three are another word
	for k := range known {
		n := editDistance(strings.ToLower(key), strings.ToLower(k))
		if n < nearest || n == nearest && k < best {
			best, nearest = k, n
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// editDistance counts the insertions, deletions and replacements between two short keys.
func editDistance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

package gokit

import (
	"fmt"
	"strconv"
	"strings"
)

const digits = 12

// Pad is the filler of the payload: the job's number as 12 hex digits, then x, so that the payload's JSON has about size bytes.
func Pad(number uint64, fill string) string { return fmt.Sprintf("%012x", number) + fill }

// Fill is the part of the pad that is the same for all jobs.
func Fill(size int) string { return strings.Repeat("x", max(size-40-digits, 0)) }

// Number reads the job's number back from the pad that a handler saw.
func Number(pad string) (uint64, error) {
	if len(pad) < digits {
		return 0, fmt.Errorf("payload without a number: %q", pad)
	}
	return strconv.ParseUint(pad[:digits], 16, 64)
}

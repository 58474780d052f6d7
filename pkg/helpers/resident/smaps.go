package resident

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// region is a range of addresses.
type region struct{ from, to uintptr }

// discardable reads the regions of /proc/PID/smaps that are read-only views of
// files without a private copy of any page. A region of which one of these is
// not said is left out.
func discardable(smaps io.Reader) ([]region, error) {
	var found []region
	var current region
	file := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if !strings.HasSuffix(fields[0], ":") {
			current, file = readOnlyFile(fields)
			continue
		}
		if file && fields[0] == "Anonymous:" && len(fields) > 1 && fields[1] == "0" {
			found = append(found, current)
		}
	}
	return found, lines.Err()
}

// readOnlyFile reads the first line of a region: addresses, permissions, offset,
// device, inode and path. It reports false unless the region is a private
// view of a file that cannot be written through it.
func readOnlyFile(fields []string) (region, bool) {
	const private = 'p'
	if len(fields) < 6 || fields[4] == "0" || !strings.HasPrefix(fields[5], "/") {
		return region{}, false
	}
	permissions := fields[1]
	if len(permissions) != 4 || permissions[1] == 'w' || permissions[3] != private {
		return region{}, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	begin, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if err1 != nil || err2 != nil || end <= begin {
		return region{}, false
	}
	return region{from: uintptr(begin), to: uintptr(end)}, true
}

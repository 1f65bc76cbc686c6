package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// procStat is what matters of /proc/PID/stat (proc(5)).
type procStat struct {
	parent      int
	childFaults int64         // minor faults of the children it waited for
	cpu         time.Duration // user and system time
}

// tick is the unit of CPU time in /proc: USER_HZ is 100 on Linux.
const tick = 10 * time.Millisecond

// readStat reads the stat file of a process: its pid, or "self".
func readStat(process string) (procStat, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", process, "stat"))
	if err != nil {
		return procStat{}, err
	}
	// The second field may hold anything; what counts stands behind it.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 13 {
		return procStat{}, fmt.Errorf("the stat file of %s has an unknown form", process)
	}
	var numbers [4]int64
	var errs [4]error
	for i, at := range [4]int{1, 8, 11, 12} {
		numbers[i], errs[i] = strconv.ParseInt(fields[at], 10, 64)
	}
	return procStat{
		parent: int(numbers[0]), childFaults: numbers[1], cpu: time.Duration(numbers[2]+numbers[3]) * tick,
	}, errors.Join(errs[:]...)
}

// processes reads every process there is.
func processes() (map[int]procStat, error) {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	all := map[int]procStat{}
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			return nil, err
		}
		if s, err := readStat(filepath.Base(name)); err == nil { // others have ended meanwhile
			all[pid] = s
		}
	}
	return all, nil
}

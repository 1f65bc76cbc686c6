package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
)

// The layout of a bbolt file (version 2, in the byte order of the machine),
// as far as a check needs it. A page is id u64, flags u16, count u16,
// overflow u32, then count elements, then their keys and values.
const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	pageBranch   = 0x01
	pageLeaf     = 0x02
	pageFreelist = 0x10

	pageHeader  = 16
	elementSize = 16
	bucketFlag  = 0x01
	bucketSize  = 16
	metaSize    = 64
	metaSummed  = 56 // what the meta's own checksum covers

	noFreelist = ^uint64(0)
)

// checkFile reads the structure of the bbolt file at path without bbolt,
// which maps the file and trusts what it finds: on a broken page it panics,
// faults or walks in a circle. The error wraps ErrDamaged. Call it while
// nobody writes.
func checkFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	if err := checkPages(f, info.Size()); err != nil {
		return damaged(path, "%v", err)
	}
	return nil
}

type meta struct {
	pageSize       int64
	root, freelist uint64
	end            uint64 // the first page that was never used
	tx             uint64
}

// pages is one check under way.
type pages struct {
	file   io.ReaderAt
	meta   meta
	used   []bool // by page, as many as the file has
	buffer []byte
}

func checkPages(file io.ReaderAt, size int64) error {
	m, err := newestMeta(file, size)
	if err != nil {
		return err
	}
	if m.end > uint64(size/m.pageSize) {
		return fmt.Errorf("it is cut short: %d bytes of at least %d", size, int64(min(m.end, 1<<40))*m.pageSize)
	}
	p := &pages{file: file, meta: m, used: make([]bool, m.end)}
	if err := p.tree(m.root); err != nil {
		return err
	}
	if m.freelist == noFreelist {
		return nil
	}
	return p.free(m.freelist)
}

// newestMeta finds the two meta pages, for whatever page size, and returns
// the one of the later transaction that is whole, as bbolt does.
func newestMeta(file io.ReaderAt, size int64) (meta, error) {
	var best meta
	found := false
	for _, at := range metaPlaces() {
		m, ok := readMeta(file, at)
		if !ok || (at != 0 && at != m.pageSize) {
			continue
		}
		if !found || m.tx > best.tx {
			best, found = m, true
		}
	}
	if !found {
		return best, errors.New("neither of its two first pages is a store's")
	}
	if size < 2*best.pageSize {
		return best, errors.New("it is cut short before its second page")
	}
	return best, nil
}

func metaPlaces() []int64 {
	places := []int64{0}
	for size := int64(1024); size <= 1024<<14; size *= 2 {
		places = append(places, size)
	}
	return places
}

func readMeta(file io.ReaderAt, at int64) (meta, bool) {
	body := make([]byte, metaSize)
	if _, err := file.ReadAt(body, at+pageHeader); err != nil {
		return meta{}, false
	}
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	check := fnv.New64a()
	check.Write(body[:metaSummed])
	if u32(body) != boltMagic || u32(body[4:]) != boltVersion || u64(body[metaSummed:]) != check.Sum64() {
		return meta{}, false
	}
	m := meta{pageSize: int64(u32(body[8:])), root: u64(body[16:]), freelist: u64(body[32:]), end: u64(body[40:]), tx: u64(body[48:])}
	return m, m.pageSize >= 1024 && m.pageSize <= 1024<<14
}

// claim reads page id whole, with its overflow, and notes that it is in use:
// twice is an error. What it returns is good until the next claim.
func (p *pages) claim(id uint64) ([]byte, error) {
	if id < 2 || id >= p.meta.end {
		return nil, fmt.Errorf("page %d is outside the file", id)
	}
	body, err := p.read(id, 1)
	if err != nil {
		return nil, err
	}
	if own := binary.NativeEndian.Uint64(body); own != id {
		return nil, fmt.Errorf("page %d says it is page %d", id, own)
	}
	overflow := uint64(binary.NativeEndian.Uint32(body[12:]))
	if id+overflow >= p.meta.end {
		return nil, fmt.Errorf("page %d reaches past the end of the file", id)
	}
	for n := id; n <= id+overflow; n++ {
		if !p.use(n) {
			return nil, fmt.Errorf("page %d is used twice", n)
		}
	}
	if overflow == 0 {
		return body, nil
	}
	return p.read(id, overflow+1)
}

// use notes that a page is in use, and reports false when it was already.
func (p *pages) use(id uint64) bool {
	if p.used[id] {
		return false
	}
	p.used[id] = true
	return true
}

func (p *pages) read(id, count uint64) ([]byte, error) {
	p.buffer = slices.Grow(p.buffer[:0], int(int64(count)*p.meta.pageSize))[:int64(count)*p.meta.pageSize]
	if _, err := p.file.ReadAt(p.buffer, int64(id)*p.meta.pageSize); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return p.buffer, nil
}

// tree checks the page id and every page below it. That no page is used
// twice bounds the depth.
func (p *pages) tree(id uint64) error {
	body, err := p.claim(id)
	if err != nil {
		return err
	}
	below, err := children(body)
	if err != nil {
		return fmt.Errorf("page %d %w", id, err)
	}
	for _, child := range below {
		if err := p.tree(child); err != nil {
			return err
		}
	}
	return nil
}

// children checks one branch or leaf page and returns the pages it points to.
func children(page []byte) ([]uint64, error) {
	u16, u32, u64 := binary.NativeEndian.Uint16, binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	kind, count := u16(page[8:]), int(u16(page[10:]))
	if pageHeader+count*elementSize > len(page) {
		return nil, errors.New("has more elements than room")
	}
	var below []uint64
	var last []byte
	for i := range count {
		at := pageHeader + i*elementSize
		element := page[at:]
		var pos, keySize, valueSize int64 // also where int has 32 bits
		switch kind {
		case pageBranch:
			pos, keySize = int64(u32(element)), int64(u32(element[4:]))
			below = append(below, u64(element[8:]))
		case pageLeaf:
			pos, keySize, valueSize = int64(u32(element[4:])), int64(u32(element[8:])), int64(u32(element[12:]))
		default:
			return nil, fmt.Errorf("is of kind %#x where a tree goes on", kind)
		}
		if int64(at)+pos+keySize+valueSize > int64(len(page)) {
			return nil, fmt.Errorf("has an element (%d) that reaches past it", i)
		}
		key, value := element[pos:][:keySize], element[pos+keySize:][:valueSize]
		if i > 0 && bytes.Compare(last, key) >= 0 {
			return nil, fmt.Errorf("has its element %d out of order", i)
		}
		last = key
		if kind == pageLeaf && u32(element)&bucketFlag != 0 {
			bucket, err := bucketRoot(value)
			if err != nil {
				return nil, err
			}
			below = append(below, bucket...)
		}
	}
	if count == 0 && kind != pageLeaf {
		return nil, fmt.Errorf("is of kind %#x and empty", kind)
	}
	return below, nil
}

// bucketRoot returns where a bucket's own tree begins. A small bucket is in
// the value itself, as one leaf page.
func bucketRoot(value []byte) ([]uint64, error) {
	if len(value) < bucketSize {
		return nil, errors.New("has a bucket that is cut short")
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return []uint64{root}, nil
	}
	inline := value[bucketSize:]
	if len(inline) < pageHeader {
		return nil, errors.New("has a bucket that is cut short")
	}
	if below, err := children(inline); err != nil || len(below) > 0 {
		return nil, errors.Join(errors.New("has a small bucket that is not one leaf"), err)
	}
	return nil, nil
}

// free checks the list of free pages: a page on it that is in use would be
// written over.
func (p *pages) free(id uint64) error {
	body, err := p.claim(id)
	if err != nil {
		return err
	}
	if binary.NativeEndian.Uint16(body[8:]) != pageFreelist {
		return fmt.Errorf("page %d is not the list of free pages", id)
	}
	count, ids := uint64(binary.NativeEndian.Uint16(body[10:])), body[pageHeader:]
	if count == 0xFFFF { // then the first entry is the count
		count, ids = binary.NativeEndian.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return fmt.Errorf("page %d has more entries than room", id)
	}
	for i := range count {
		n := binary.NativeEndian.Uint64(ids[i*8:])
		if n < 2 || n >= p.meta.end || !p.use(n) {
			return fmt.Errorf("page %d is on the list of free pages and must not be", n)
		}
	}
	return nil
}

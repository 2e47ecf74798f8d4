// SPDX-License-Identifier: Apache-2.0

package muster

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/zeebo/xxh3"
	"google.golang.org/grpc/codes"
)

// chunkBytes is what BatchService.Submit takes at a time.
const chunkBytes = 1 << 20

// Content is what is submitted: a File, Bytes, JSONLines or a Reader.
type Content interface {
	open() (*source, error)
}

type contentFunc func() (*source, error)

func (f contentFunc) open() (*source, error) { return f() }

// File is the content of the file at path.
func File(path string) Content {
	return contentFunc(func() (*source, error) {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		return &source{Reader: file, seeker: file, close: file.Close}, nil
	})
}

// Bytes is the content that they are, in the job's input format.
func Bytes(content []byte) Content {
	return contentFunc(func() (*source, error) {
		reader := bytes.NewReader(content)
		return &source{Reader: reader, seeker: reader}, nil
	})
}

// JSONLines is one line of JSON for each record: for jobs whose format is jsonl.
func JSONLines[T any](records []T) (Content, error) {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines) // ends each with a line feed
	encoder.SetEscapeHTML(false)
	for _, record := range records {
		if err := encoder.Encode(record); err != nil {
			return nil, err
		}
	}
	return Bytes(lines.Bytes()), nil
}

// Reader is what reader still gives. It is read once where the submission has a request id, and is not
// closed. Without an id, one that can Seek is read twice, and any other is a new batch each time.
func Reader(reader io.Reader) Content {
	return contentFunc(func() (*source, error) {
		seeker, _ := reader.(io.Seeker)
		return &source{Reader: reader, seeker: seeker}, nil
	})
}

// source is content that is about to be read, from where its reader stands.
type source struct {
	io.Reader
	seeker io.Seeker // nil: it can be read once
	close  func() error
}

func (s *source) Close() {
	if s.close != nil {
		_ = s.close() // it was only read
	}
}

// size is that of what is still to be read; false: it is not known, and the source can be read once.
func (s *source) size() (uint64, bool) {
	if s.seeker == nil {
		return 0, false
	}
	begin, err := s.seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		s.seeker = nil // a pipe says only now that it cannot
		return 0, false
	}
	end, err := s.seeker.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = s.seeker.Seek(begin, io.SeekStart)
	}
	if err != nil {
		s.seeker = nil
		return 0, false
	}
	return uint64(max(end-begin, 0)), true
}

// digest is the hash of what is still to be read; false: it cannot be read twice.
func (s *source) digest() ([16]byte, bool, error) {
	if _, known := s.size(); !known {
		return [16]byte{}, false, nil
	}
	begin, err := s.seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return [16]byte{}, false, err
	}
	whole := xxh3.New()
	if _, err = io.Copy(whole, s.Reader); err == nil {
		_, err = s.seeker.Seek(begin, io.SeekStart)
	}
	return whole.Sum128().Bytes(), true, err
}

// keptContent is read once from front to back, and kept until it is durable elsewhere. For several
// goroutines.
//
//	0        durable      end
//	│ forgotten │  kept    │ not read yet
type keptContent struct {
	mu      sync.Mutex
	reader  io.Reader
	kept    []keptChunk
	hash    *xxh3.Hasher
	durable uint64
	end     uint64
	whole   bool
}

type keptChunk struct {
	begin uint64
	data  []byte
}

func (c keptChunk) end() uint64 { return c.begin + uint64(len(c.data)) }

func keep(reader io.Reader) *keptContent { return &keptContent{reader: reader, hash: xxh3.New()} }

// forget: what is before this offset will not be taken again.
func (c *keptContent) forget(below uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.durable = max(c.durable, below)
	for len(c.kept) > 0 && c.kept[0].end() <= c.durable {
		c.kept[0].data = nil // the array behind the slice stays for a while
		c.kept = c.kept[1:]
	}
}

// take gives up to a chunk from offset on; none: the content ends before.
func (c *keptContent) take(offset uint64) ([]byte, error) {
	for {
		c.mu.Lock()
		ready := c.end > offset || c.whole
		for _, chunk := range c.kept {
			if chunk.begin <= offset && offset < chunk.end() {
				c.mu.Unlock()
				return chunk.data[offset-chunk.begin:], nil
			}
		}
		lost := offset < c.end
		c.mu.Unlock()
		if lost {
			return nil, &Error{Code: codes.DataLoss,
				Message: "the initiator lacks content that it called durable"}
		}
		if ready {
			return nil, nil
		}
		if err := c.read(offset); err != nil {
			return nil, err
		}
	}
}

// read is not under the lock: what is heard meanwhile must not wait for a slow reader.
func (c *keptContent) read(keepFrom uint64) error {
	chunk := make([]byte, chunkBytes)
	count, whole, err := fill(c.reader, chunk)
	if err != nil {
		return &unreadable{err}
	}
	chunk = chunk[:count]
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.hash.Write(chunk) // never fails
	if c.end+uint64(count) > keepFrom {
		c.kept = append(c.kept, keptChunk{c.end, chunk})
	}
	c.end += uint64(count)
	c.whole = whole
	return nil
}

// fill reads until into is full, or the content is whole. io.ReadFull does not tell the end from a reader
// that was cut off: a truncated gzip, or the body of a lost connection, says io.ErrUnexpectedEOF itself.
func fill(reader io.Reader, into []byte) (count int, whole bool, err error) {
	for count < len(into) {
		got, err := reader.Read(into[count:])
		count += got
		if err == io.EOF {
			return count, true, nil
		}
		if err != nil {
			return count, false, err
		}
	}
	return count, false, nil
}

// soleChunk gives all of the content, if one chunk holds it.
func (c *keptContent) soleChunk() ([]byte, bool, error) {
	chunk, err := c.take(0)
	if err != nil {
		return nil, false, err
	}
	more, err := c.take(uint64(len(chunk)))
	return chunk, len(more) == 0, err
}

// size and digest are those of all of it, when it is read to its end.
func (c *keptContent) size() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end
}

func (c *keptContent) digest() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.hash.Sum128().Bytes()
	return sum[:]
}

// unreadable says that the content cannot be read.
type unreadable struct{ cause error }

func (u *unreadable) Error() string { return u.cause.Error() }

func isUnreadable(err error) (error, bool) {
	var found *unreadable
	if errors.As(err, &found) {
		return found.cause, true
	}
	return nil, false
}

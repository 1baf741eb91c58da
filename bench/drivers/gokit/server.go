package gokit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Server is the driver's own connection, beside the contender's: it reads INFO and asks whether the queue is empty, and counts
// its commands so that they can be taken off the contender's.
type Server struct {
	conn net.Conn
	in   *bufio.Reader
	sent int64
}

// Address splits redis://host:port or unix:///path into what net.Dial wants.
func Address(text string) (network, address string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "", err
	}
	switch {
	case u.Scheme == "unix" && u.Path != "":
		return "unix", u.Path, nil
	case u.Scheme == "redis" && u.Host != "" && u.Port() != "":
		return "tcp", u.Host, nil
	case u.Scheme == "redis" && u.Host != "":
		return "tcp", u.Host + ":6379", nil
	}
	return "", "", fmt.Errorf("%w: url=%s is neither redis://HOST:PORT nor unix:///PATH", ErrUsage, text)
}

// Dial connects to the server of the run.
func Dial(text string) (*Server, error) {
	network, address, err := Address(text)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout(network, address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return &Server{conn: conn, in: bufio.NewReaderSize(conn, 1<<16)}, nil
}

// Close ends the connection.
func (s *Server) Close() { s.conn.Close() }

// Do sends one command; the reply is an int64, a string, nil or a slice of these.
func (s *Server) Do(args ...string) (any, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	s.sent++
	if _, err := io.WriteString(s.conn, b.String()); err != nil {
		return nil, err
	}
	return s.reply()
}

func (s *Server) reply() (any, error) {
	line, err := s.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, errors.New("empty reply")
	}
	switch kind, rest := line[0], line[1:]; kind {
	case '+':
		return rest, nil
	case '-':
		return nil, errors.New(rest)
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, err
		}
		text := make([]byte, n+2)
		_, err = io.ReadFull(s.in, text)
		return string(text[:n]), err
	case '*':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, err
		}
		items := make([]any, n)
		for i := range items {
			if items[i], err = s.reply(); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	return nil, fmt.Errorf("cannot read the reply %q", line)
}

// Int sends a command that answers with a number.
func (s *Server) Int(args ...string) (int64, error) {
	v, err := s.Do(args...)
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok {
		return 0, fmt.Errorf("%s: not a number: %v", args[0], v)
	}
	return n, nil
}

type serverUsage struct {
	cpu      float64
	commands int64 // without the driver's own
}

// INFO does not count itself yet when it answers, so the commands sent so far, without this one, are the driver's share.
func (s *Server) usage() (serverUsage, error) {
	own := s.sent
	v, err := s.Do("INFO", "all")
	if err != nil {
		return serverUsage{}, err
	}
	text, _ := v.(string)
	var u serverUsage
	for _, line := range strings.Split(text, "\r\n") {
		key, value, _ := strings.Cut(line, ":")
		switch {
		case key == "used_cpu_sys" || key == "used_cpu_user":
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return u, err
			}
			u.cpu += f
		case strings.HasPrefix(key, "cmdstat_"):
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			n, err := strconv.ParseInt(calls, 10, 64)
			if err != nil {
				return u, err
			}
			u.commands += n
		}
	}
	u.commands -= own
	return u, nil
}

// Memory is the server's used_memory.
func (s *Server) Memory() (float64, error) {
	v, err := s.Do("INFO", "memory")
	if err != nil {
		return 0, err
	}
	text, _ := v.(string)
	for _, line := range strings.Split(text, "\r\n") {
		if key, value, _ := strings.Cut(line, ":"); key == "used_memory" {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.New("INFO has no used_memory")
}

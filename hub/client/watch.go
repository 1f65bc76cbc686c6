package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"fletch/hub/wire"
	"fletch/state"
)

// maxNews is the longest line of /v1/watch: a snapshot of a large fleet.
const maxNews = 64 << 20

// Fleet reads the fleet once.
func (c *Client) Fleet(ctx context.Context) (state.Fleet, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fleet, _, err := c.Watch(ctx)
	return fleet, err
}

// Watch gives the fleet as it is and every later event. The channel closes
// when ctx ends, the hub ends, or this watcher falls behind; then watch
// again.
func (c *Client) Watch(ctx context.Context) (state.Fleet, <-chan state.Event, error) {
	response, err := c.send(ctx, http.MethodGet, "/v1/watch", nil)
	if err != nil {
		return state.Fleet{}, nil, err
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(make([]byte, 0, 64<<10), maxNews)
	next := func() (wire.News, bool) {
		var news wire.News
		ok := lines.Scan() && json.Unmarshal(lines.Bytes(), &news) == nil
		return news, ok
	}
	first, ok := next()
	if !ok || first.Fleet == nil {
		_ = response.Body.Close()
		return state.Fleet{}, nil, errors.New("watching the fleet: the hub ended the stream")
	}
	events := make(chan state.Event, 64)
	go func() {
		defer close(events)
		defer func() { _ = response.Body.Close() }()
		for {
			news, ok := next()
			if !ok || news.Event == nil {
				return
			}
			select {
			case events <- *news.Event:
			case <-ctx.Done():
				return
			}
		}
	}()
	return *first.Fleet, events, nil
}

// Until hands the fleet as it is, and as it is after every event, to enough
// until that says so or fails. A watch that ends, since the hub did or this
// client fell behind, is begun again.
func (c *Client) Until(ctx context.Context, enough func(state.Fleet) (bool, error)) error {
	for {
		done, err := c.untilEnd(ctx, enough)
		if done || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// untilEnd is Until for one watch; done is false when the watch ended.
func (c *Client) untilEnd(ctx context.Context, enough func(state.Fleet) (bool, error)) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fleet, events, err := c.Watch(ctx)
	if err != nil {
		return false, err
	}
	for {
		if done, err := enough(fleet); done || err != nil {
			return true, err
		}
		e, ok := <-events
		if !ok {
			return false, nil
		}
		fleet = fleet.Apply(e)
	}
}

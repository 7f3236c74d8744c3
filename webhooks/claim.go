package webhooks

import "entrega/jobs"

// drained asks for the next deliveries of an endpoint whose lane is worked here. It never blocks.
func (d *Deliverer) drained(endpointID string) {
	d.mu.Lock()
	d.wanting[endpointID] = true
	d.mu.Unlock()
	d.want()
}

// want makes Wanted readable.
func (d *Deliverer) want() {
	select {
	case d.wanted <- struct{}{}:
	default: // It is.
	}
}

// Wanted implements jobs.Claimer.
func (d *Deliverer) Wanted() <-chan struct{} { return d.wanted }

// Claims implements jobs.Claimer. What a lane may not claim is left to a promotion, which knows the exceptions.
func (d *Deliverer) Claims(most int) []jobs.Claim {
	d.mu.Lock()
	var ids []string
	for id := range d.wanting {
		if len(ids) == most {
			break
		}
		ids = append(ids, id)
		delete(d.wanting, id)
	}
	more := len(d.wanting) > 0
	d.mu.Unlock()
	if more {
		d.want()
	}
	claims := make([]jobs.Claim, 0, len(ids))
	for _, id := range ids {
		if c, ok := d.lanes.claim(id); ok {
			claims = append(claims, c)
		} else {
			d.ask(id)
		}
	}
	return claims
}

// Claimed implements jobs.Claimer.
func (d *Deliverer) Claimed(done []jobs.Claimed) {
	for _, c := range done {
		if c.Refused {
			d.ask(c.EndpointID)
			continue
		}
		d.lanes.claimed(c)
	}
}

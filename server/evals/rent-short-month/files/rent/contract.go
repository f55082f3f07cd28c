// Package rent knows contracts and when their rent is due.
package rent

import "time"

// Contract is a flat that is let from a day on. Cents are due every month.
type Contract struct {
	Tenant string
	Begins time.Time
	Cents  int
}

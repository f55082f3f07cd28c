package rent

import (
	"time"

	"example.com/rent/calendar"
)

// Due lists the days on which rent is due, from the first month after the contract began up to and including until.
func (c Contract) Due(until time.Time) []time.Time {
	var days []time.Time
	for day := calendar.AddMonths(c.Begins, 1); !day.After(until); day = calendar.AddMonths(day, 1) {
		days = append(days, day)
	}
	return days
}

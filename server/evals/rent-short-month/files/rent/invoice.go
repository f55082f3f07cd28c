package rent

import (
	"fmt"
	"time"

	"example.com/rent/calendar"
)

// Invoices are the lines for everything that is due in a month.
func Invoices(contracts []Contract, year int, month time.Month) []string {
	var lines []string
	last := calendar.Day(year, month+1, 0)
	for _, c := range contracts {
		for _, day := range c.Due(last) {
			if day.Year() == year && day.Month() == month {
				lines = append(lines, fmt.Sprintf("%s: %d.%02d on %s", c.Tenant, c.Cents/100, c.Cents%100, calendar.Shown(day)))
			}
		}
	}
	return lines
}

// Package calendar holds what the standard library leaves open about days.
package calendar

import "time"

// Day is midnight UTC of a day.
func Day(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// AddMonths is so many months later, on the same day of the month.
func AddMonths(day time.Time, months int) time.Time {
	return day.AddDate(0, months, 0)
}

// Shown is a day as our invoices write it.
func Shown(day time.Time) string {
	return day.Format("2 January 2006")
}

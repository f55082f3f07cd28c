// Program rent prints the invoices of a month.
package main

import (
	"fmt"

	"example.com/rent/calendar"
	"example.com/rent/rent"
)

func main() {
	for _, line := range rent.Invoices([]rent.Contract{{Tenant: "Ito", Begins: calendar.Day(2023, 1, 31), Cents: 65000}}, 2023, 2) {
		fmt.Println(line)
	}
}

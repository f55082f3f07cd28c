// Program checksums prints a checksum for each file.
package main

import (
	"fmt"
	"hash/crc32"
	"os"

	"example.com/checksums/pool"
)

func main() {
	files := os.Args[1:]
	sums, err := pool.Map(4, len(files), func(i int) (string, error) {
		data, err := os.ReadFile(files[i])
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%08x  %s", crc32.ChecksumIEEE(data), files[i]), nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "checksums:", err)
		os.Exit(1)
	}
	for _, sum := range sums {
		fmt.Println(sum)
	}
}

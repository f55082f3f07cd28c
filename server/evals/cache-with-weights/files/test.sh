#!/bin/sh
# Build everything and run the tests.
set -e
rm -rf out
javac -d out $(find src test -name "*.java")
java -cp out cache.CacheTest
java -cp out cache.WeightTest

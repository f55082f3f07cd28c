package parcel;

import java.nio.file.Files;
import java.nio.file.Path;

public final class HiddenTest {
    public static void main(String[] args) throws Exception {
        int[][] cases = {
            {500, 0, 0, 380}, {501, 0, 0, 490}, {1000, 0, 0, 490}, {1001, 0, 0, 600}, {20_000, 0, 0, 4670}, {500, 1, 0, 760},
            {500, 1, 10_025, 961}, {500, 0, 10_024, 580}, {500, 0, 7_500, 530}, {500, 0, 7_525, 531}, {1, 0, 1, 530},
            {1, 0, 2_000_000_000, 380 + 40_000_000},
        };
        for (int[] c : cases) {
            int found = Postage.of(new Parcel(c[0], c[1] == 1, c[2]));
            if (found != c[3]) {
                throw new AssertionError(c[0] + " g, " + c[2] + ": " + found + ", not " + c[3]);
            }
        }
        for (int grams : new int[] {0, -5, 20_001}) {
            try {
                Postage.of(new Parcel(grams, false, 0));
                throw new AssertionError(grams + " g was taken");
            } catch (IllegalArgumentException right) {
                // as it should be
            }
        }
        String test = Files.readString(Path.of("test/parcel/PostageTest.java"));
        for (String what : new String[] {"exactly 500 g", "501 g", "insured for half a cent more", "10_025"}) {
            if (!test.contains(what)) {
                throw new AssertionError("a case was taken out of the tests: " + what);
            }
        }
    }
}

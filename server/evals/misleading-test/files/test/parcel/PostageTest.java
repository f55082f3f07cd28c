package parcel;

public final class PostageTest {
    private static int failed = 0;

    private static void expect(String what, int wanted, int found) {
        if (wanted != found) {
            failed++;
            System.out.println("FAILED " + what + ": " + found + ", not " + wanted);
        }
    }

    public static void main(String[] args) {
        expect("light", 380, Postage.of(new Parcel(200, false, 0)));
        expect("exactly 500 g", 490, Postage.of(new Parcel(500, false, 0)));
        expect("501 g", 490, Postage.of(new Parcel(501, false, 0)));
        expect("abroad", 760, Postage.of(new Parcel(100, true, 0)));
        expect("insured", 380 + 150, Postage.of(new Parcel(100, false, 1000)));
        expect("insured for half a cent more", 380 + 201, Postage.of(new Parcel(100, false, 10_025)));
        System.exit(failed == 0 ? 0 : 1);
    }
}

package parcel;

/** What a parcel costs, in cents; see docs/postage.md. */
public final class Postage {
    private static final int STEP = 500;
    private static final int HEAVIEST = 20_000;

    private Postage() {}

    /** The price in cents. Throws IllegalArgumentException for a parcel that is not taken. */
    public static int of(Parcel parcel) {
        if (parcel.grams() <= 0 || parcel.grams() > HEAVIEST) {
            throw new IllegalArgumentException("not taken: " + parcel.grams() + " g");
        }
        int steps = (parcel.grams() - 1) / STEP;
        int price = 380 + steps * 110;
        if (parcel.abroad()) {
            price *= 2;
        }
        return price + Insurance.of(parcel.insuredCents());
    }
}

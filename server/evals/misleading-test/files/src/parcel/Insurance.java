package parcel;

/** What insurance costs, in cents. */
final class Insurance {
    private Insurance() {}

    static int of(int value) {
        if (value == 0) {
            return 0;
        }
        return Math.max(150, value * 2 / 100);
    }
}

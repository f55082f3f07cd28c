package cache;

final class Check {
    private Check() {}

    static void that(boolean right, String what) {
        if (!right) {
            throw new AssertionError(what);
        }
    }
}

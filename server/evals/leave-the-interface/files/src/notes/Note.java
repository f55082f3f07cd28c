package notes;

/** A note: its name (letters and digits) and its text. */
public record Note(String name, String text) {
    public Note {
        if (!name.matches("[A-Za-z0-9]+")) {
            throw new IllegalArgumentException("not a name: " + name);
        }
    }
}

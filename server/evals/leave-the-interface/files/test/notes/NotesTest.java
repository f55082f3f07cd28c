package notes;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

public final class NotesTest {
    public static void main(String[] args) throws Exception {
        Path folder = Files.createTempDirectory("notes");
        Store store = new FileStore(folder);
        store.put(new Note("b", "two\nlines\n"));
        store.put(new Note("a", ""));
        check(store.get("b").text().equals("two\nlines\n"), "the text");
        check(store.get("c") == null, "no note");
        check(store.names().equals(List.of("a", "b")), "the names");
    }

    private static void check(boolean right, String what) {
        if (!right) {
            throw new AssertionError(what);
        }
    }
}

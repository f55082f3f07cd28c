package notes;

import java.io.IOException;
import java.util.List;

/** Where notes are kept. */
public interface Store {
    /** Keeps a note; one of the same name is replaced. */
    void put(Note note) throws IOException;

    /** The note of that name, null where there is none. */
    Note get(String name) throws IOException;

    /** The names of all notes, by alphabet. */
    List<String> names() throws IOException;
}

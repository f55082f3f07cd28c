package parcel;

/** A parcel: its weight in grams, its insured value in cents (0: not insured). */
public record Parcel(int grams, boolean abroad, int insuredCents) {}

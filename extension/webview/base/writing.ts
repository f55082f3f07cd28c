// Whether the person is in the middle of writing: then nothing takes the focus away.

let composer: HTMLTextAreaElement | null = null;

/** The box of the composer that is drawn now. */
export function setComposer(box: HTMLTextAreaElement | null): void {
  composer = box;
}

/** Whether the composer has the focus and holds text. */
export const isWriting = (): boolean =>
  composer !== null && document.activeElement === composer && composer.value !== "";

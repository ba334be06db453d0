/** Types of elements.js, whose header says what the components are. */

/** Draws what a model's layers say of a prompt: attributes `model`, `prompt`, `tokens`, `view`, `plan`. */
export interface PellucidLens extends HTMLElement {
  /** What is drawn, with typed arrays; null before the event `drawn`. */
  readonly data: any;
}

/** A program with a button that runs it. */
export type PellucidRepl = HTMLElement;

declare global {
  interface HTMLElementTagNameMap {
    "pellucid-lens": PellucidLens;
    "pellucid-repl": PellucidRepl;
  }
}

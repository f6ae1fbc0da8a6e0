/**
 * A question over the page: the browser's own dialog, which keeps the focus inside, closes on Escape and gives the focus
 * back. It is there while it is rendered. A click beside it does nothing: it may hold what cannot be had again.
 */
import { type ReactNode, useId, useLayoutEffect, useRef } from 'react';
import './dialog.css';

interface Props {
  readonly title: string;
  readonly close: () => void;
  readonly children: ReactNode;
  /** Wider, for tables and previews. */
  readonly wide?: boolean;
}

export function Dialog({ title, close, children, wide = false }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  // closed before it is taken off the page: a dialog that is off the page gives no focus back
  useLayoutEffect(() => {
    const { current } = box;
    current?.showModal();
    // to write something is what most are opened for; the browser would rather have the button that closes it
    current?.querySelector<HTMLElement>('input, select, textarea')?.focus();
    return () => current?.close();
  }, []);
  return (
    <dialog
      ref={box}
      className={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <div className="dialog-body">
        <header className="dialog-head">
          <h2 id={id}>{title}</h2>
          <button type="button" className="button bare" aria-label="Close" onClick={close}>
            <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
              <path d="m4 4 8 8M12 4l-8 8" />
            </svg>
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

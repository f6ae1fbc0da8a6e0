/**
 * The button of an action and the dialog it opens. The dialog hangs below the page and not beside its button, so that a
 * table or a graph around the button does not dress it. A role that may not act is offered nothing.
 */
import { type ReactNode, useLayoutEffect, useRef, useState } from 'react';
import { createPortal } from 'react-dom';
import { Dialog } from '../kit/dialog.tsx';
import { useMayOperate } from '../session/session.ts';
import './actions.css';

interface Props {
  readonly label: string;
  readonly title: string;
  readonly kind?: 'primary' | 'danger' | undefined;
  readonly wide?: boolean;
  /** Else there is no button; a dialog that is open stays. */
  readonly offered?: boolean;
  readonly children: (close: () => void) => ReactNode;
}

export function ActionDialog({ label, title, kind, wide = false, offered = true, children }: Props) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  if (!useMayOperate()) return null;
  return (
    <>
      {offered ? (
        <button
          type="button"
          className={kind === undefined ? 'button' : `button ${kind}`}
          aria-haspopup="dialog"
          onClick={() => setOpen(true)}
        >
          {label}
        </button>
      ) : null}
      {isOpen
        ? createPortal(
            <Dialog title={title} close={close} wide={wide}>
              {children(close)}
            </Dialog>,
            document.body,
          )
        : null}
    </>
  );
}

interface FootProps {
  readonly close: () => void;
  /** What the button that does it says; left out when it is done. */
  readonly act?: string;
  readonly kind?: 'primary' | 'danger';
  readonly disabled?: boolean;
  readonly children?: ReactNode;
}

/** The end of a dialog: what went wrong or came of it, the way out, and the button that submits the form around it. */
export function ActionFoot({ close, act, kind = 'primary', disabled = false, children }: FootProps) {
  return (
    <footer className="dialog-foot">
      {children}
      <button type="button" className="button" onClick={close}>
        {act === undefined ? 'Close' : 'Not now'}
      </button>
      {act === undefined ? null : (
        <button type="submit" className={`button ${kind}`} disabled={disabled}>
          {act}
        </button>
      )}
    </footer>
  );
}

interface FormProps {
  readonly submit: () => void;
  readonly children: ReactNode;
}

/** Return submits, wherever the cursor stands; it begins in the first field. */
export function ActionForm({ submit, children }: FormProps) {
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => {
    const field = form.current?.querySelector<HTMLElement>('input:not([type="checkbox"]), select, textarea');
    // the attribute is for a dialog that is about to open, the call for one that is open already
    field?.setAttribute('autofocus', '');
    field?.focus();
  }, []);
  return (
    <form
      ref={form}
      className="action-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {children}
    </form>
  );
}

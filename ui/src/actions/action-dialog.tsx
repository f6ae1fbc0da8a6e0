/**
 * The button of an action and the dialog it opens. The dialog is rendered at the end of the page, not beside its button, so
 * that the styles of a table or graph around the button do not apply to it. Viewers see no button.
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
  /** Without it there is no button; an open dialog stays open. */
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
  /** Label of the submit button; left out once the action is done. */
  readonly act?: string;
  readonly kind?: 'primary' | 'danger';
  readonly disabled?: boolean;
  readonly children?: ReactNode;
}

/** The end of a dialog: errors or results, the button that closes it, and the button that submits the form. */
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

/** Return submits the form from any field; the first field has the focus. */
export function ActionForm({ submit, children }: FormProps) {
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => {
    const field = form.current?.querySelector<HTMLElement>('input:not([type="checkbox"]), select, textarea');
    // the attribute is for a dialog that is about to open, the call for one that is already open
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

/** Copies a text. Where the browser does not let pages do that (over plain HTTP), it is not offered. */
import { useState } from 'react';

export function CopyButton({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [isCopied, setCopied] = useState(false);
  if (!isSecureContext) return null;
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
  };
  return (
    <button type="button" className="button" aria-live="polite" onClick={() => void copy()}>
      {isCopied ? 'Copied' : label}
    </button>
  );
}

/** A request or an answer of a delivery, as text. It scrolls, so the keyboard must be able to reach it. */
import './bus.css';

export function BusMessage({ text }: { readonly text: string }) {
  return (
    <pre className="bus-message" tabIndex={0}>
      {text}
    </pre>
  );
}

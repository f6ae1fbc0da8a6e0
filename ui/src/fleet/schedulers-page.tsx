/** Schedulers */
export default function SchedulersPage() {
  return <h1>Schedulers</h1>;
}

// Server-sent events out of the bytes of a response.

/** The data of each event, as text. A character or a line may come in two pieces. */
export async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const events = (rest + value).split(/\r?\n\r?\n/);
      rest = events.pop();
      for (const event of events) {
        const data = dataOf(event);
        if (data !== "") yield data;
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // whoever stops listening stops the server too
  }
}

function dataOf(event) {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(line[5] === " " ? 6 : 5)).join("\n");
}

"""When it is computed: sequences, pages, scheduler, engine, streams; `load` wires everything."""

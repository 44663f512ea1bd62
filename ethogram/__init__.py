"""The ethogram protocol: envelope, vocabulary, validation, canonical form, sinks. It knows no producer."""

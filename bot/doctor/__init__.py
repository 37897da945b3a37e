"""What `vistobueno doctor` looks at, one module per subject; nothing here changes anything."""

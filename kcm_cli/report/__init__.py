"""Reports as one HTML file without outside parts: of ``kcm trace`` and ``kcm plan``, from what ``-o json`` prints."""

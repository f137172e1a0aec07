"""The decisions of the Job controller, a module per topic; ``controller.py`` calls them in order."""
